"""Serve a journal in a database, together with other nodes: follow it, own it when nobody does, hand it
over in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from time import monotonic

from litestar.types import ASGIApp, Receive, Scope, Send
from structlog import get_logger

from tollkeeper.api.console.application import console_alone
from tollkeeper.api.http.app import create_admin_app, create_app
from tollkeeper.api.http.forward import Forwarder, node_context
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.node import SharingNode
from tollkeeper.api.http.serve import (
    STOPPING,
    Server,
    configuration,
    listening,
    listening_beside,
    own_journal,
    settle_memory,
    telemetry_of,
)
from tollkeeper.api.http.settings import Settings, StartError
from tollkeeper.engine.following import (
    Following,
    Interrupted,
    become_owner,
    begin_to_follow,
    catch_up,
    fill_again,
    look_for_amendments,
)
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.contract import Fenced, JournalError, Locked, Unavailable
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE, lock
from tollkeeper.engine.journal.postgres.journal import PostgresJournal, follow_database
from tollkeeper.engine.journal.postgres.nodes import (
    Heartbeat,
    has_successor,
    is_loopback,
    leave,
    nodes_of,
    out_of_reach,
    tell,
)
from tollkeeper.engine.keep import note_listed
from tollkeeper.engine.key_uses import read_key_uses
from tollkeeper.engine.lateness import keep_lateness
from tollkeeper.engine.offline.jobs.jobs import Jobs, open_jobs
from tollkeeper.engine.open import fill_windows, open_on, sealing
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.search.asking import Search, searching

_LOOK_S = 0.1
"""How often a node looks whose journal it is and what is new in it."""
TELL_S = 1.0
"""How often a node says that it is there, and looks for what was rewritten."""
AGAIN_S = 0.5
"""How long a node waits after a failure before it opens the journal again."""
CEASE_S = 0.3
"""How long what was begun may still be answered before the journal is handed over."""
_REACH = (
    "nodes on other machines reach themselves there: set node-host, and node-address if need be"
)

log = get_logger()


@dataclass(slots=True)
class Serving:
    """What a node serves with. `address` is where other nodes reach it; `stopping` is set once it is to
    end, and `drained` once no request can come any more.
    """

    settings: Settings
    url: str
    address: str
    node: SharingNode
    search: Search
    jobs: Jobs
    openid: OpenId
    progress: Progress
    figures: Figures
    servers: list[Server] = field(default_factory=list)
    admin: ASGIApp | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    drained: asyncio.Event = field(default_factory=asyncio.Event)


async def serve_node(settings: Settings, openid: OpenId, progress: Progress) -> None:
    """Until the process is told to end. Raises `StartError`, `JournalError`."""
    assert settings.database is not None
    certificates = settings.node_tls
    try:
        context = None if certificates is None else node_context(certificates, server=True)
        forwarder = Forwarder(certificates, settings.idle_seconds)
    except OSError as error:
        raise StartError(f"node-tls: `{certificates}` can't be used: {error}") from error
    async with AsyncExitStack() as stack:
        public = stack.enter_context(listening(settings.host, settings.port))
        between = stack.enter_context(listening(settings.node_host, settings.node_port))
        admin = stack.enter_context(listening_beside(settings.admin_listener()))
        pages = stack.enter_context(listening_beside(settings.console_listener()))
        stack.enter_context(lock(settings.folder, SERVICE_PURPOSE))
        stack.callback(forwarder.close)
        search = await stack.enter_async_context(searching(settings.source))
        jobs = await stack.enter_async_context(open_jobs())
        scheme = "http" if context is None else "https"
        host = f"[{settings.node_host}]" if ":" in settings.node_host else settings.node_host
        name = settings.node_address or f"{host}:{between.getsockname()[1]}"
        figures = Figures()
        node = SharingNode(forwarder, figures)
        serving = Serving(
            *(settings, settings.database, f"{scheme}://{name}", node, search, jobs, openid),
            progress,
            figures,
        )

        async def of_admin(scope: Scope, receive: Receive, send: Send) -> None:
            assert serving.admin is not None
            await serving.admin(scope, receive, send)

        listeners = [
            (node.public, public, None),
            (node.from_nodes, between, context),
            (of_admin, admin, None),
            (console_alone(node.public), pages, None),
        ]
        _stop_by_signals(serving)
        sharing = asyncio.create_task(_share(serving))
        opened = asyncio.create_task(serving.opened.wait())
        await asyncio.wait((sharing, opened), return_when=asyncio.FIRST_COMPLETED)
        running = []
        for app, bound, tls in listeners:
            if bound is not None and not sharing.done():
                config = configuration(app, settings)
                # One application is behind several listeners, and has nothing to begin or to end.
                config.lifespan = "off"
                config.load()
                config.ssl = tls
                server = Server(config)
                serving.servers.append(server)
                running.append(asyncio.create_task(server.serve(sockets=[bound])))
        await asyncio.wait((sharing, *running), return_when=asyncio.FIRST_COMPLETED)
        for server in serving.servers:
            server.should_exit = True
        for each in running:
            await each
        serving.stopping.set()
        serving.drained.set()
        opened.cancel()
        try:
            await sharing
        except Exception as error:
            is_told = isinstance(error, JournalError)
            log.error("stopped", reason=str(error), exc_info=not is_told)
            raise


async def _share(serving: Serving) -> None:
    """Follows, owns and hands over until the node is to stop. Raises `JournalError` for a journal that
    can't be used at the start."""
    while not serving.stopping.is_set():
        try:
            async with _opened(serving) as following:
                if not await _follow(serving, following) or await _own(serving, following):
                    await _end_requests(serving)
                    return
        except (Unavailable, Locked, Interrupted) as error:
            if isinstance(error, Unavailable) and not serving.opened.is_set():
                raise
            log.warning("journal_left", reason=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(serving.stopping.wait(), AGAIN_S)
    await _end_requests(serving)


@asynccontextmanager
async def _opened(serving: Serving) -> AsyncIterator[Following]:
    """The journal with an engine whose windows are whole, as far as it can be followed."""
    settings, node = serving.settings, serving.node
    async with AsyncExitStack() as stack:
        following_journal = follow_database(serving.url, waiting_limit=settings.waiting)
        journal = await stack.enter_async_context(following_journal)
        await _begin(serving, journal)
        opening = open_on(
            journal,
            settings.source,
            windows_cap=settings.windows_cap,
            windows_total_cap=settings.windows_total_cap,
            late=(settings.late_hours + 1) * HOUR,
            damage=settings.damage,
        )
        engine = await stack.enter_async_context(opening)
        engine.reach, engine.beside = settings.reach, serving.jobs.beside
        engine.key_uses = read_key_uses(engine.folder)
        keep_lateness(engine.folder, engine.windows.late)
        following = await begin_to_follow(engine, journal)
        wrapped = await stack.enter_async_context(telemetry_of(engine, settings, serving.figures))
        service = (settings, serving.search, serving.jobs, serving.figures, serving.openid)
        node.serve(engine, wrapped(create_app(engine, *service)))
        serving.admin = create_admin_app(engine, settings, serving.figures)
        watching = asyncio.create_task(_watch(serving, following))
        try:
            serving.opened.set()
            # The first header set compiles the patterns: better now than with a payment waiting.
            engine.clients({"user-agent": "tollkeeper"})
            if settings.damage != "read-only":
                await fill_windows(engine, serving.progress)
            settle_memory()
            following.is_whole = engine.follows = True
            yield following
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            node.learn("", None)
            with suppress(JournalError):
                await journal.look(partial(leave, node=journal.node))


async def _begin(serving: Serving, journal: PostgresJournal) -> None:
    """Done once what this machine has kept of the journal is in what can be followed."""
    first = standing = await journal.standing()
    while standing.safe < first.last:
        if not standing.is_held and await journal.take_over(SERVICE_PURPOSE, serving.address):
            return
        await asyncio.sleep(_LOOK_S)
        standing = await journal.standing()
    journal.followed(standing.safe)


async def _watch(serving: Serving, following: Following) -> None:
    """Knows who owns the journal, and tells the others of this node, until cancelled."""
    journal, node = following.journal, serving.node
    owner, told, may_be_unreachable = "", 0.0, is_loopback(serving.address)
    while True:
        try:
            standing = await journal.standing()
            behind = standing.last - journal.last_sequence()
            serving.figures.behind = 0 if node.decides else max(0, behind)
            owner, is_ours = standing.owner, standing.owner == journal.node
            is_there = standing.is_held and not is_ours
            node.learn(owner, standing.address or None if is_there else None)
            if monotonic() - told > TELL_S:
                told = monotonic()
                name = (journal.node, serving.address, version("tollkeeper"))
                heartbeat = Heartbeat(*name, journal.last_sequence(), following.is_whole)
                await journal.look(partial(tell, heartbeat=heartbeat))
                if may_be_unreachable and out_of_reach(await journal.look(nodes_of)):
                    may_be_unreachable = False
                    log.warning("node_unreachable", address=serving.address, advice=_REACH)
        except Unavailable:
            node.learn(owner, None)
        await asyncio.sleep(_LOOK_S)


async def _follow(serving: Serving, following: Following) -> bool:
    """Until the journal is this node's; False once it is to stop."""
    engine, journal, looked = following.engine, following.journal, 0.0
    while not serving.stopping.is_set():
        taken = False
        with suppress(Unavailable):
            standing = await journal.standing()
            if standing.is_held and standing.owner != journal.node:
                await catch_up(following, standing.safe)
                if monotonic() - looked > TELL_S:
                    looked = monotonic()
                    if not await look_for_amendments(following):
                        await fill_again(following)
            else:
                taken = await journal.take_over(SERVICE_PURPOSE, serving.address)
        if taken:
            serving.figures.takeovers += 1
        if taken and engine.damage.policy == "read-only":
            log.warning("read_only", reason="the service was started so")
            return True
        if taken:
            begun = monotonic()
            await become_owner(following)
            log.info(
                "ready",
                accounts=len(engine.state.accounts),
                passed_over=len(engine.damage.passed_over),
                seconds=round(monotonic() - begun, 3),
            )
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(serving.stopping.wait(), _LOOK_S)
    return False


async def _own(serving: Serving, following: Following) -> bool:
    """Answers requests until the node is to stop, and lets another take over if one could at once.

    Raises `Fenced` when the journal has become another's.
    """
    engine, journal, node = following.engine, following.journal, serving.node
    stopping = asyncio.create_task(serving.stopping.wait())
    async with sealing(journal):
        is_read_only = engine.damage.policy == "read-only"
        every_s = serving.settings.snapshot_minutes * 60
        work = journal.lost() if is_read_only else own_journal(engine, every_s)
        working = asyncio.create_task(work)
        node.decides = True
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                node.decides = False
                await _lost(journal, working)
            if await journal.look(partial(has_successor, node=journal.node)):
                begun = monotonic()
                serving.search.stopping = True
                await node.cease(CEASE_S)
                working.cancel()
                await asyncio.wait([working])
                with suppress(JournalError):
                    await note_listed(engine)
                await journal.hand_over()
                log.info("handed_over", seconds=round(monotonic() - begun, 3))
            await _end_requests(serving)
            return True
        finally:
            node.decides = False
            working.cancel()
            stopping.cancel()
            await asyncio.wait((working, stopping))


async def _lost(journal: PostgresJournal, working: asyncio.Task[None]) -> None:
    """Raises what has ended an owner's work: `Fenced` where it is that the journal is another's."""
    if journal.is_lost:
        raise Fenced("another process has taken the journal over")
    await working


async def _end_requests(serving: Serving) -> None:
    serving.search.stopping = True
    for server in serving.servers:
        server.should_exit = True
    if serving.servers:
        await serving.drained.wait()


def _stop_by_signals(serving: Serving) -> None:
    for each in STOPPING:
        asyncio.get_running_loop().add_signal_handler(each, serving.stopping.set)
