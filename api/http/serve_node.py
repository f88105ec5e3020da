"""Serve the journals in a database together with other nodes, which divide their ownership."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from ssl import SSLContext

import uvicorn
from litestar.types import Receive, Scope, Send
from structlog import get_logger

from tollkeeper.api.console.application import console_alone, with_console
from tollkeeper.api.http.app import payment_links, plain_payments
from tollkeeper.api.http.forward import Forwarder, node_context
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.node import SharingNode
from tollkeeper.api.http.serve import (
    STOPPING,
    Server,
    configuration,
    listening,
    listening_beside,
    tell_console_address,
)
from tollkeeper.api.http.settings import Settings, StartError
from tollkeeper.api.http.shards import Shards
from tollkeeper.api.http.share import AGAIN_S, TELL_S, Serving, SharedShard, share
from tollkeeper.engine.journal.contract import JournalError, Locked
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE, lock
from tollkeeper.engine.journal.postgres.shards import open_shards, owner_addresses
from tollkeeper.engine.journal.source import Database, shard_of
from tollkeeper.engine.offline.jobs.jobs import open_jobs
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.search.ask import run_search_process

log = get_logger()


async def serve_node(settings: Settings, openid: OpenId, progress: Progress) -> None:
    """Serve until the process is told to end. Raises `StartError`, `JournalError`."""
    assert settings.database is not None
    whole = Database(settings.database, settings.folder)
    certificates = settings.node_tls
    try:
        context = None if certificates is None else node_context(certificates, server=True)
        Forwarder(certificates, settings.idle_seconds)
    except OSError as error:
        raise StartError(f"node-tls: `{certificates}` can't be used: {error}") from error
    async with AsyncExitStack() as stack:
        public = stack.enter_context(listening(settings.host, settings.port))
        between = stack.enter_context(listening(settings.node_host, settings.node_port))
        admin = stack.enter_context(listening_beside(settings.admin_listener()))
        pages = stack.enter_context(listening_beside(settings.console_listener()))
        count = await shards_there(settings.database, settings.shards)
        jobs = await stack.enter_async_context(open_jobs())
        scheme = "http" if context is None else "https"
        host = f"[{settings.node_host}]" if ":" in settings.node_host else settings.node_host
        name = settings.node_address or f"{host}:{between.getsockname()[1]}"
        address, figures = f"{scheme}://{name}", Figures()
        serving = Serving(settings, address, jobs, openid, progress, figures)
        shared = []
        for number in range(1, count + 1):
            source = shard_of(whole, number)
            stack.enter_context(lock(source.folder, SERVICE_PURPOSE))
            forwarder = Forwarder(certificates, settings.idle_seconds, number)
            stack.callback(forwarder.close)
            search = await stack.enter_async_context(run_search_process(source))
            shared.append(SharedShard(serving, source, SharingNode(forwarder, figures), search))
        tell_console_address(settings, pages or public)
        shards = Shards([each.node for each in shared])

        async def of_admin(scope: Scope, receive: Receive, send: Send) -> None:
            assert serving.admin is not None
            await serving.admin(scope, receive, send)

        of_clients = with_console(shards.public) if settings.console == "on" else shards.public
        # Telemetry observes requests from outside the application.
        is_direct = settings.telemetry is None
        plain = plain_payments(shards.plain) if is_direct else None
        links = payment_links(shards.taking, settings) if is_direct else None
        listeners = [
            (configuration(of_clients, settings, plain), public, None),
            (configuration(shards.from_nodes, settings, links=links), between, context),
            (configuration(of_admin, settings), admin, None),
            (configuration(console_alone(shards.public), settings), pages, None),
        ]
        _stop_by_signals(serving)
        urls = [each.source.url for each in shared]
        turns = in_turn(await asyncio.to_thread(owner_addresses, urls))
        # Which one copies the owner's windows first is settled by which begins first.
        begun = {number: asyncio.create_task(share(shared[number])) for number in turns}
        sharing = [begun[number] for number in range(count)]
        opened = asyncio.create_task(_all_of([each.opened for each in shared]))
        stopping = asyncio.create_task(serving.stopping.wait())
        await asyncio.wait((*sharing, opened, stopping), return_when=asyncio.FIRST_COMPLETED)
        servers: list[Server] = []
        running: list[asyncio.Task[None]] = []
        if opened.done():
            for config, bound, tls in listeners:
                if bound is not None:
                    servers.append(_server(config, tls))
                    running.append(asyncio.create_task(servers[-1].serve(sockets=[bound])))
        balancing = asyncio.create_task(_balance(shared))
        left = asyncio.create_task(_all_of([each.left for each in shared]))
        await asyncio.wait((*sharing, *running, left), return_when=asyncio.FIRST_COMPLETED)
        serving.stopping.set()
        # Until every shard is handed over, requests are still forwarded.
        leaving = [asyncio.create_task(each.left.wait()) for each in shared]
        pairs = zip(sharing, leaving, strict=True)
        for pair in pairs:
            await asyncio.wait(pair, return_when=asyncio.FIRST_COMPLETED)
        for each in shared:
            each.search.stopping = True
        for server in servers:
            server.should_exit = True
        for each_running in running:
            await each_running
        serving.drained.set()
        for waiting in (opened, stopping, balancing, left, *leaving):
            waiting.cancel()
        await asyncio.wait(sharing)
        for done in sharing:
            if (failure := done.exception()) is not None:
                is_told = isinstance(failure, JournalError)
                log.error("stopped", reason=str(failure), exc_info=None if is_told else failure)
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
    """Return the shards' indexes in the order in which a node that joins can come to own them: first
    those that nobody owns, then as others give them away (`to_give`).
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


async def _balance(shared: Sequence[SharedShard]) -> None:
    """Give shards away, one at a time, as long as another node has two fewer, until cancelled."""
    while True:
        await asyncio.sleep(TELL_S)
        if not any(each.giving.is_set() for each in shared) and (found := to_give(shared)):
            shard, node = found
            shard.give(node)


def to_give(shared: Sequence[SharedShard]) -> tuple[SharedShard, str] | None:
    """Return the shard that this node should give away next, and to which node. None if it owns no
    more than any other or hardly more than a possible successor, or if some owner is unknown.

    Of several nodes that own equally many, only the last by address gives, so that two never do at
    once.
    """
    address = shared[0].serving.address
    owned = Counter(each.owner_address for each in shared)
    if (
        owned[""]
        or not owned[address]
        or max(owned, key=lambda each: (owned[each], each)) != address
    ):
        return None
    takers = [
        (owned[other], other, number)
        for number, each in enumerate(shared)
        if each.node.decides
        for other in each.successors
        if other != address
    ]
    count, other, number = min(takers, default=(owned[address], "", 0))
    if owned[address] - count < 2:
        return None
    return shared[number], shared[number].successors[other]


def _stop_by_signals(serving: Serving) -> None:
    for each in STOPPING:
        asyncio.get_running_loop().add_signal_handler(each, serving.stopping.set)
