"""Serve a data folder: open the engine, rebuild its windows beside, answer until told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import cast

import uvicorn
import uvloop
from structlog import get_logger

from tollkeeper.api.http.app import create_app
from tollkeeper.api.http.connection import Connection
from tollkeeper.api.http.logs import logging_to
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.events.delivery import deliver
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.lock import SERVICE
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.privacy.retention import keep_to_retention
from tollkeeper.engine.publish.queue import answer_requests
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.asking import Search, searching

COLLECT_AT = (20_000, 50, 1_000)
"""Requests leave little to the collector, and a look at all that the windows hold takes long."""

Progress = Callable[[float], None]


def serve(settings: Settings, progress: Progress) -> None:
    """Serve until SIGTERM or SIGINT: requests in flight are answered, then the journal is closed.

    `progress` is told the share of the windows filled. Raises `JournalError` for a folder that
    can't be used.
    """
    with logging_to(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, progress))


async def _serve(settings: Settings, progress: Progress) -> None:
    opening = open_engine(
        settings.folder,
        SERVICE,
        waiting_limit=settings.waiting,
        windows_cap=settings.windows_cap,
        late=(settings.late_hours + 1) * HOUR,
    )
    async with opening as engine, beside(engine, progress), searching(engine.folder) as search:
        engine.reach = settings.reach
        await Server(configuration(engine, settings, search)).serve()


@asynccontextmanager
async def beside(engine: Engine, progress: Progress) -> AsyncIterator[None]:
    """What runs beside the requests: the rebuilding, then alerts, commands' answers, purging."""

    async def work() -> None:
        # The first header set compiles the patterns: better now than with a payment waiting.
        engine.clients({"user-agent": "tollkeeper"})
        await rebuild(engine, progress)
        settle_memory()
        get_logger().info("ready", accounts=len(engine.state.accounts))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(deliver(engine))
            tasks.create_task(answer_requests(engine))
            tasks.create_task(keep_to_retention(engine))

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        working.cancel()
        await asyncio.wait([working])


def settle_memory() -> None:
    """Spare the collector what is there to stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AT)


class Server(uvicorn.Server):
    """Stops when told to, and leaves the process to close what is open."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again once it has stopped, before the journal is closed.
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self.handle_exit, each, None)
        yield


def configuration(engine: Engine, settings: Settings, search: Search) -> uvicorn.Config:
    connection = partial(
        Connection, head_bytes=settings.head_bytes, body_seconds=settings.body_seconds
    )
    return uvicorn.Config(
        create_app(engine, settings, search),
        host=settings.host,
        port=settings.port,
        http=cast("type[Connection]", connection),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=settings.connections,
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.drain_seconds,
    )
