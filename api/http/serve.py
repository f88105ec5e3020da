"""Serve a data folder: listen, open the engine, rebuild its windows in the background, answer until
told to stop.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import cast

import uvicorn
import uvloop
from litestar.types import ASGIApp
from structlog import get_logger

from tollkeeper.api.console.application import console_alone
from tollkeeper.api.http.app import create_admin_app, plain_payments, public_app, service_of
from tollkeeper.api.http.connection import Connection, Waiting
from tollkeeper.api.http.logs import logging_to
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.notices import notice_body
from tollkeeper.api.http.plain import PlainPayments, answering
from tollkeeper.api.http.settings import Settings, StartError
from tollkeeper.api.http.taken_payments import PaymentLinks
from tollkeeper.api.http.threads import YieldingThreads
from tollkeeper.engine.console_address import keep_console_address
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import Fenced, JournalError
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.journal.source import require_current
from tollkeeper.engine.keep_accesses import keep_accesses
from tollkeeper.engine.key_uses import keep_key_uses, read_key_uses
from tollkeeper.engine.lateness import keep_lateness
from tollkeeper.engine.offline.jobs.jobs import open_jobs
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.openid.providers import OpenIdError, read_providers
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.privacy.deletion import finish_deletions
from tollkeeper.engine.privacy.erasure import take_up_erasures
from tollkeeper.engine.privacy.make_erasures import make_erasures
from tollkeeper.engine.privacy.retention import keep_to_retention
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.end_publications import end_publications
from tollkeeper.engine.publish.queue import answer_requests
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.ask import Search, run_search_process
from tollkeeper.engine.watching import watch_clock, watch_disk
from tollkeeper.engine.webhooks.delivery import deliver
from tollkeeper.engine.window_snapshot import keep_snapshots

SERVICE_COLLECTS_AT = (20_000, 50, 1_000)
"""Requests leave little garbage, and a full collection over all windows takes long."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BACKLOG = 2048


def serve(settings: Settings, progress: Progress) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; then answer the requests in flight and close the
    journal.

    `progress` is given the share of the windows that are filled. Raises `StartError` if it can't
    listen on an address, `JournalError` for a folder that can't be used or is damaged.
    """
    allow_open_files()
    with logging_to(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, progress))


def allow_open_files() -> None:
    """Let the process open as many files as the system allows.

    A shell allows 1,024, fewer than `connections`: idle clients alone could use them all, and then
    neither a health check nor a read of the journal could open one.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # where the most is no number
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(settings: Settings, progress: Progress) -> None:
    asyncio.get_running_loop().set_default_executor(YieldingThreads())
    require_data(settings)
    require_telemetry(settings)
    openid = openid_of(settings)
    if settings.database is not None:
        # Imported late: an extra, which data folders never need.
        from tollkeeper.api.http.serve_node import serve_node

        await serve_node(settings, openid, progress)
        return
    # Listen before rebuilding, so that a failure isn't found only an hour later.
    with (
        listening(settings.host, settings.port) as public,
        listening_beside(settings.admin_listener()) as admin,
        listening_beside(settings.console_listener()) as pages,
    ):
        opening = open_engine(
            settings.source,
            SERVICE_PURPOSE,
            waiting_limit=settings.waiting,
            windows_cap=settings.windows_cap,
            windows_total_cap=settings.windows_total_cap,
            late=(settings.late_hours + 1) * HOUR,
            damage=settings.damage,
        )
        async with (
            opening as engine,
            run_search_process(engine.source) as search,
            open_jobs() as jobs,
        ):
            engine.reach, engine.run_in_worker = settings.reach, jobs.run_in_worker
            engine.key_uses = read_key_uses(engine.folder)
            keep_lateness(engine.folder, engine.windows.late)
            tell_console_address(settings, pages or public)
            figures = Figures()
            service = service_of(engine, settings, search, jobs, figures, openid)
            app = public_app(service)
            # Telemetry observes requests from outside the application.
            payments = plain_payments(answering(service)) if settings.telemetry is None else None
            async with telemetry_of(engine, settings, figures) as wrapped:
                server = Server(configuration(wrapped(app), settings, payments))
                stop_by_signals(server, search)
                async with (
                    _beside_server(create_admin_app(engine, settings, figures), settings, admin),
                    _beside_server(console_alone(app), settings, pages),
                    run_background(engine, progress, server, settings.snapshot_minutes * 60),
                ):
                    await server.serve(sockets=[public])


async def own_journal(engine: Engine, snapshot_s: float | None) -> None:
    """Run the journal owner's background work until cancelled: alerts, answers to commands, erasures,
    purging, and every `snapshot_s` seconds a snapshot of the windows.

    Raises a group that contains `Fenced` if another process took the journal over.
    """
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_end_when_lost(engine))
        tasks.create_task(deliver(engine, notice_body))
        tasks.create_task(answer_requests(engine))
        tasks.create_task(keep_to_retention(engine))
        tasks.create_task(make_erasures(engine))
        tasks.create_task(watch_disk(engine))
        tasks.create_task(watch_clock(engine))
        tasks.create_task(keep_key_uses(engine))
        tasks.create_task(end_publications(engine))
        tasks.create_task(keep_accesses(engine))
        if snapshot_s is not None:
            tasks.create_task(keep_snapshots(engine, snapshot_s))


async def _end_when_lost(engine: Engine) -> None:
    await engine.journal.wait_until_lost()
    raise Fenced("another process has taken the journal over: this one ends")


def require_data(settings: Settings) -> None:
    """Raise `JournalError` if there must be a journal and there is none."""
    if settings.database is not None:
        if settings.require_data:
            require_current(settings.source)
        return
    path = settings.folder / schema.DATABASE_FILE
    if settings.require_data and not path.exists():
        raise JournalError(
            f"there is no `{path}`, and `require-data` is set: is the disk mounted that holds it?"
        )


def require_telemetry(settings: Settings) -> None:
    """Raise `StartError` if telemetry is configured but not installed."""
    is_installed = find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk")
    if settings.telemetry is not None and not is_installed:
        raise StartError("`telemetry` needs an extra: pip install 'tollkeeper[telemetry]'")


def openid_of(settings: Settings) -> OpenId:
    """Return the OpenID providers; none if not configured. Raises `StartError`."""
    if settings.openid is None:
        return OpenId()
    if find_spec("joserfc") is None:
        raise StartError("`openid` needs an extra: pip install 'tollkeeper[openid]'")
    try:
        return OpenId(read_providers(settings.openid))
    except OpenIdError as error:
        raise StartError(f"openid: {error}") from None


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket bound to the address. Raises `StartError`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise StartError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    with bound:
        get_logger().info("bound", host=host, port=bound.getsockname()[1])
        yield bound


def tell_console_address(settings: Settings, bound: socket.socket) -> None:
    """Leave in the folder where the console is reached, if there is one."""
    if settings.console != "off":
        host, _ = settings.console_listener() or (settings.host, 0)
        keep_console_address(settings.folder, host, bound.getsockname()[1])


@contextmanager
def listening_beside(listener: tuple[str, int] | None) -> Iterator[socket.socket | None]:
    """As `listening`, for an optional listener."""
    if listener is None:
        yield None
        return
    with listening(*listener) as bound:
        yield bound


@asynccontextmanager
async def telemetry_of(
    engine: Engine, settings: Settings, figures: Figures
) -> AsyncIterator[Callable[[ASGIApp], ASGIApp]]:
    """Wrap applications with telemetry, if configured, while the context lasts."""
    if settings.telemetry is None:
        yield lambda app: app
        return
    # Hundreds of modules: imported only if needed.
    from tollkeeper.api.http.telemetry import telemetry

    async with telemetry(settings.telemetry, engine, figures) as wrapped:
        yield wrapped


@asynccontextmanager
async def _beside_server(
    app: ASGIApp, settings: Settings, bound: socket.socket | None
) -> AsyncIterator[None]:
    """Serve another application on its own listener, until the public one has answered its last
    request.
    """
    if bound is None:
        yield
        return
    server = Server(configuration(app, settings))
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([serving])


@asynccontextmanager
async def run_background(
    engine: Engine,
    progress: Progress,
    server: Server | None = None,
    snapshot_s: float | None = None,
) -> AsyncIterator[None]:
    """Run the background work beside the requests: rebuilding, then `own_journal`.

    If it fails, the server stops, and the failure is raised afterwards.
    """

    async def work() -> None:
        try:
            if engine.damage.policy == "read-only":
                get_logger().warning("read_only", reason="the service was started so")
                return
            # Compile the header patterns now, not while a payment waits.
            engine.clients({"user-agent": "tollkeeper"})
            await finish_deletions(engine)
            await take_up_erasures(engine)
            await rebuild(engine, progress)
            settle_memory()
            while server is not None and not server.started:
                await asyncio.sleep(0.01)
            get_logger().info(
                "ready",
                accounts=len(engine.state.accounts),
                passed_over=len(engine.damage.passed_over),
            )
            await own_journal(engine, snapshot_s)
        except Exception as error:
            get_logger().error(
                "stopped", reason=str(error), exc_info=not isinstance(error, JournalError)
            )
            if server is not None:
                server.should_exit = True
            raise

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def stop_by_signals(server: Server, search: Search) -> None:
    """Stop the server in an orderly way on signals."""

    def stop(signal_number: int) -> None:
        # Streams end only when they see this.
        search.stopping = True
        server.handle_exit(signal_number, None)

    for each in STOPPING:
        asyncio.get_running_loop().add_signal_handler(each, stop, each)


def settle_memory() -> None:
    """Freeze existing objects for the garbage collector, since they stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SERVICE_COLLECTS_AT)


class Server(uvicorn.Server):
    """Stops when `should_exit` is set, and leaves signals and the end of the process to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again after stopping, before the journal is closed.
        yield


def configuration(
    app: ASGIApp,
    settings: Settings,
    payments: PlainPayments | None = None,
    links: PaymentLinks | None = None,
) -> uvicorn.Config:
    """Return how an application is served; plain requests are answered by `payments` instead, and
    connections on which other nodes send payments are taken over by `links`.
    """
    connection = partial(
        Connection,
        waiting=Waiting(settings.heads_per_address),
        head_bytes=settings.head_bytes,
        body_seconds=settings.body_seconds,
        payments=payments,
        links=links,
    )
    return uvicorn.Config(
        app,
        interface="asgi3",
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
