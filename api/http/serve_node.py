"""Serve the journals in a database together with other nodes, which divide their ownership."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from ssl import SSLContext
from typing import NamedTuple

import uvicorn
from litestar.types import Receive, Scope, Send
from structlog import get_logger

from tollkeeper.api.console.application import console_alone, with_console
from tollkeeper.api.http.app import payment_links, plain_payments
from tollkeeper.api.http.forward import Forwarder, node_context
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.serve import (
    STOPPING,
    Server,
    configuration,
    listening,
    listening_beside,
    tell_console_address,
)
from tollkeeper.api.http.serve_shard import AGAIN_S, TELL_S, ServedShard, Serving, serve_shard
from tollkeeper.api.http.settings import Settings, StartError
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.api.http.shards import Shards
from tollkeeper.engine.journal.contract import JournalError, Locked
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE, lock
from tollkeeper.engine.journal.postgres.shards import open_shards, owner_addresses
from tollkeeper.engine.journal.source import Database, shard_of
from tollkeeper.engine.offline.jobs.jobs import open_jobs
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.search.ask import run_search_process

log = get_logger()


class Listener(NamedTuple):
    """An application on a bound socket, with TLS if `tls` is set."""

    config: uvicorn.Config
    bound: socket.socket
    tls: SSLContext | None = None


async def serve_node(settings: Settings, openid: OpenId, progress: Progress) -> None:
    """Serve until the process is told to end. Raises `StartError`, `JournalError`."""
    assert settings.database is not None
    tls = _tls_for_nodes(settings)
    async with AsyncExitStack() as stack:
        public = stack.enter_context(listening(settings.host, settings.port))
        between = stack.enter_context(listening(settings.node_host, settings.node_port))
        admin = stack.enter_context(listening_beside(settings.admin_listener()))
        pages = stack.enter_context(listening_beside(settings.console_listener()))
        count = await shards_there(settings.database, settings.shards)
        jobs = await stack.enter_async_context(open_jobs())
        address = _node_address(settings, between, has_tls=tls is not None)
        serving = Serving(settings, address, jobs, openid, progress, Figures())
        served = [
            await stack.enter_async_context(_opened_shard(serving, number))
            for number in range(1, count + 1)
        ]
        tell_console_address(settings, pages or public)

        async def answer_admin(scope: Scope, receive: Receive, send: Send) -> None:
            assert serving.admin is not None
            await serving.admin(scope, receive, send)

        shards = Shards([each.requests for each in served])
        listeners = [
            Listener(_public_configuration(shards, settings), public),
            Listener(_nodes_configuration(shards, settings), between, tls),
        ]
        if admin is not None:
            listeners.append(Listener(configuration(answer_admin, settings), admin))
        if pages is not None:
            console = console_alone(shards.public)
            listeners.append(Listener(configuration(console, settings), pages))
        _stop_by_signals(serving)
        await _serve_shards(serving, served, listeners)


def _tls_for_nodes(settings: Settings) -> SSLContext | None:
    """Return the TLS settings of the listener for other nodes; None if not configured. Raises
    `StartError`.
    """
    certificates = settings.node_tls
    if certificates is None:
        return None
    try:
        # Connections to other nodes are made later: find out now whether they can be.
        node_context(certificates)
        return node_context(certificates, server=True)
    except OSError as error:
        raise StartError(f"node-tls: `{certificates}` can't be used: {error}") from error


def _node_address(settings: Settings, between: socket.socket, *, has_tls: bool) -> str:
    """Return the address at which other nodes reach this one."""
    host = f"[{settings.node_host}]" if ":" in settings.node_host else settings.node_host
    name = settings.node_address or f"{host}:{between.getsockname()[1]}"
    return f"https://{name}" if has_tls else f"http://{name}"


@asynccontextmanager
async def _opened_shard(serving: Serving, number: int) -> AsyncIterator[ServedShard]:
    """Lock the shard's folder, and start what answers its requests and its searches."""
    settings = serving.settings
    assert settings.database is not None
    source = shard_of(Database(settings.database, settings.folder), number)
    with (
        lock(source.folder, SERVICE_PURPOSE),
        closing(Forwarder(settings.node_tls, settings.idle_seconds, number)) as forwarder,
    ):
        async with run_search_process(source) as search:
            requests = ShardRequests(forwarder, serving.figures)
            yield ServedShard(serving, source, requests, search)


def _public_configuration(shards: Shards, settings: Settings) -> uvicorn.Config:
    app = with_console(shards.public) if settings.console == "on" else shards.public
    # Telemetry observes requests from outside the application.
    payments = plain_payments(shards.plain) if settings.telemetry is None else None
    return configuration(app, settings, payments)


def _nodes_configuration(shards: Shards, settings: Settings) -> uvicorn.Config:
    links = payment_links(shards.taking, settings) if settings.telemetry is None else None
    return configuration(shards.from_nodes, settings, links=links)


async def _serve_shards(
    serving: Serving, served: Sequence[ServedShard], listeners: Sequence[Listener]
) -> None:
    """Serve all shards, and listen once each can answer or forward, until the node is to stop or one
    of them fails. Raises what the shard raised.
    """
    urls = [each.source.url for each in served]
    turns = in_turn(await asyncio.to_thread(owner_addresses, urls))
    # The shard whose task begins first copies its owner's windows first.
    begun = {index: asyncio.create_task(serve_shard(served[index])) for index in turns}
    tasks = [begun[index] for index in range(len(served))]
    opened = asyncio.create_task(_all_of([each.opened for each in served]))
    stopping = asyncio.create_task(serving.stopping.wait())
    await asyncio.wait((*tasks, opened, stopping), return_when=asyncio.FIRST_COMPLETED)
    servers: list[Server] = []
    running: list[asyncio.Task[None]] = []
    if opened.done():
        for config, bound, tls in listeners:
            servers.append(_server(config, tls))
            running.append(asyncio.create_task(servers[-1].serve(sockets=[bound])))
    balancing = asyncio.create_task(_balance(served))
    left = asyncio.create_task(_all_of([each.left for each in served]))
    await asyncio.wait((*tasks, *running, left), return_when=asyncio.FIRST_COMPLETED)
    serving.stopping.set()
    # Until every shard is handed over, requests are still forwarded.
    leaving = [asyncio.create_task(each.left.wait()) for each in served]
    for pair in zip(tasks, leaving, strict=True):
        await asyncio.wait(pair, return_when=asyncio.FIRST_COMPLETED)
    for each in served:
        each.search.stopping = True
    for server in servers:
        server.should_exit = True
    for server_task in running:
        await server_task
    serving.drained.set()
    for waiting in (opened, stopping, balancing, left, *leaving):
        waiting.cancel()
    await asyncio.wait(tasks)
    _raise_failure(tasks)


def _raise_failure(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Log and raise the first error that ended a shard's task."""
    for task in tasks:
        if (failure := task.exception()) is not None:
            is_expected = isinstance(failure, JournalError)
            log.error("stopped", reason=str(failure), exc_info=None if is_expected else failure)
            raise failure


async def shards_there(url: str, wanted: int | None) -> int:
    """Return the number of shards of a database, once no service of an older release uses it.
    Raises `JournalError`.
    """
    while True:
        try:
            return await asyncio.to_thread(open_shards, url, wanted)
        except Locked as error:
            log.warning("journal_left", reason=str(error))
        await asyncio.sleep(AGAIN_S)


def _server(config: uvicorn.Config, tls: SSLContext | None) -> Server:
    # The application has several listeners, so it has no start or end of its own.
    config.lifespan = "off"
    config.load()
    config.ssl = tls
    return Server(config)


async def _all_of(events: Sequence[asyncio.Event]) -> None:
    for each in events:
        await each.wait()


def in_turn(owner_addresses: Sequence[str]) -> list[int]:
    """Return the shards' indexes in the order in which a node that joins may become their owner: first
    those without an owner, then those that others give away, in that order (`to_give`).
    """
    left: dict[str, deque[int]] = {}
    for index, address in enumerate(owner_addresses):
        left.setdefault(address, deque()).append(index)
    turns = list(left.pop("", ()))
    while left:
        giver = max(left, key=lambda each: (len(left[each]), each))
        turns.append(left[giver].popleft())
        if not left[giver]:
            del left[giver]
    return turns


async def _balance(served: Sequence[ServedShard]) -> None:
    """Give shards away, one at a time, as long as another node owns two fewer, until cancelled."""
    while True:
        await asyncio.sleep(TELL_S)
        if not any(each.giving.is_set() for each in served) and (gift := to_give(served)):
            shard, node = gift
            shard.give(node)


def to_give(served: Sequence[ServedShard]) -> tuple[ServedShard, str] | None:
    """Return the shard that this node should give away next, and to which node. None if it owns no
    more than any other or hardly more than a possible successor, or if some owner is unknown.

    Of several nodes that own equally many, only the last by address gives, so that two never do at
    once.
    """
    address = served[0].serving.address
    owned = Counter(each.owner_address for each in served)
    if (
        owned[""]
        or not owned[address]
        or max(owned, key=lambda each: (owned[each], each)) != address
    ):
        return None
    takers = [
        (owned[other], other, number)
        for number, each in enumerate(served)
        if each.requests.decides
        for other in each.successors
        if other != address
    ]
    count, other, number = min(takers, default=(owned[address], "", 0))
    if owned[address] - count < 2:
        return None
    return served[number], served[number].successors[other]


def _stop_by_signals(serving: Serving) -> None:
    for each in STOPPING:
        asyncio.get_running_loop().add_signal_handler(each, serving.stopping.set)
