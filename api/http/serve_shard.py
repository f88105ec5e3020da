"""Serve one shard together with other nodes: follow its journal, own it if no other node does, and
hand it over when this node ends or another one owns fewer shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from litestar.types import ASGIApp
from structlog import get_logger

from tollkeeper.api.http.app import create_admin_app, public_app, service_of
from tollkeeper.api.http.forward import node_context
from tollkeeper.api.http.joining import take_kept
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.serve import (
    own_journal,
    settle_memory,
    telemetry_of,
)
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.engine.enter_alerts import write_entered
from tollkeeper.engine.following import (
    Following,
    Interrupted,
    become_owner,
    begin_to_follow,
    catch_up,
    fill_again,
    look_for_amendments,
    note_own_amendments,
)
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Fenced, JournalError, Locked, Unavailable
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.journal.postgres.journal import PostgresJournal, follow_database
from tollkeeper.engine.journal.postgres.nodes import (
    Heartbeat,
    has_successor,
    is_loopback,
    nodes_of,
    out_of_reach,
    remove_node,
    successors,
    write_heartbeat,
)
from tollkeeper.engine.journal.postgres.ownership import JournalStanding
from tollkeeper.engine.journal.postgres.schema import awaits_standby
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.key_uses import read_key_uses
from tollkeeper.engine.lateness import keep_lateness
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.open import fill_windows, open_on, sealing
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.release import this_release
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.ask import Search
from tollkeeper.engine.velocity.snapshot import FILE

_LOOK_S = 0.1
"""How often a node checks who owns the journal, and what is new in it."""
_MANY = 20
_STRIDE_S = 4 * _LOOK_S
"""A follower that has counted `_MANY` entries in a step begins the next one `_STRIDE_S` later: an
entry costs less in a longer step."""
_LONGEST_UNSEEN_S = 2 * _LOOK_S
"""How long a follower that is busy may go without checking who owns the journal."""
_OWNER_UNSEEN_S = 0.5
"""The same for the owner."""
TELL_S = 1.0
"""How often a node announces itself, and looks for rewritten entries."""
AGAIN_S = 0.5
"""How long a node waits after a failure before it opens the journal again."""
CEASE_S = 0.3
"""How long requests in flight may still be answered before the journal is handed over."""
ENDS_S = 10.0
"""How long a node that leaves a journal waits for a database that does not answer."""
TAKEN_S = 2.0
"""How long a node that gave a journal away waits for the other to take it."""
_REACH = (
    "nodes on other machines reach themselves there: set node-host, and node-address if need be"
)

log = get_logger()


@dataclass(slots=True)
class Serving:
    """What all shards of a node share. `address` is where other nodes reach it; `stopping` is set
    when it is to end, `drained` once no more requests can come.
    """

    settings: Settings
    address: str
    jobs: Jobs
    openid: OpenId
    progress: Progress
    figures: Figures
    admin: ASGIApp | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    drained: asyncio.Event = field(default_factory=asyncio.Event)
    copying: asyncio.Lock = field(default_factory=asyncio.Lock)
    restoring: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class ServedShard:
    """One shard, as this node serves it. `owner_address` is where its owner is reached, empty if nobody
    holds the lease, as of `looked_at` (by `time.monotonic`); `successors` are the nodes that could
    take over at once, as `nodes.successors`. `giving` is set when the shard is to be handed over to
    the node `given_to`. `opened` is set once requests can be answered or forwarded, `left` once this
    node has given the shard up for good.
    """

    serving: Serving
    source: Database
    requests: ShardRequests
    search: Search
    owner_address: str = ""
    looked_at: float = 0.0
    successors: dict[str, str] = field(default_factory=dict)
    given_to: str | None = None
    giving: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def named(self) -> dict[str, int]:
        """The shard's number for log lines; nothing if it is the only one."""
        engine = self.requests.engine
        journal = None if engine is None else engine.journal
        return {} if journal is None or journal.shard.of == 1 else {"shard": journal.shard.number}

    def give(self, node: str) -> None:
        """Hand the shard over to another node."""
        self.given_to = node
        self.giving.set()


async def serve_shard(shard: ServedShard) -> None:
    """Follow, own and hand over the journal until the node is to stop; wait for a database that can't
    be reached. Raises `JournalError` for a journal that can't be used.
    """
    serving = shard.serving
    while not serving.stopping.is_set():
        try:
            async with _opened(shard) as following:
                if not await _follow(shard, following) or await _own(shard, following):
                    await _leave(shard)
                    return
        except (Unavailable, Locked, Interrupted) as error:
            if shard.requests.engine is not None:
                shard.requests.learn("", None)
            log.warning("journal_left", **shard.named(), reason=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await serving.stopping.wait()
    await _leave(shard)


async def _leave(shard: ServedShard) -> None:
    """Forward the requests that still come, until no more can."""
    shard.left.set()
    await shard.serving.drained.wait()


@asynccontextmanager
async def _opened(shard: ServedShard) -> AsyncIterator[Following]:
    """Open the journal with an engine whose windows are complete, as far as the journal can be
    followed.
    """
    async with _opened_journal(shard) as journal:
        await _begin(shard, journal)
        async with _opened_engine(shard, journal) as engine:
            following = await begin_to_follow(engine, journal)
            async with _given_requests(shard, engine), _watched(shard, following):
                shard.opened.set()
                # Compile the header patterns now, not while a payment waits.
                engine.clients({"user-agent": "tollkeeper"})
                if engine.damage.policy != "read-only":
                    await _fill_in_turn(engine, shard.serving)
                settle_memory()
                following.is_whole = engine.follows = True
                with suppress(Unavailable):
                    await _tell(shard, following)
                yield following


@asynccontextmanager
async def _opened_journal(shard: ServedShard) -> AsyncIterator[PostgresJournal]:
    """Open the journal, and copy the owner's derived files if this machine has none."""
    serving, settings = shard.serving, shard.serving.settings
    async with AsyncExitStack() as stack:
        async with serving.copying:
            opening = follow_database(shard.source.url, waiting_limit=settings.waiting)
            journal = await stack.enter_async_context(opening)
            stack.callback(journal.end_within, ENDS_S)
            ending = asyncio.create_task(_end_in_time(serving, journal))
            stack.callback(ending.cancel)
            certificates = settings.node_tls
            tls = None if certificates is None else node_context(certificates)
            await take_kept(shard.source, journal, tls)
        yield journal


@asynccontextmanager
async def _opened_engine(shard: ServedShard, journal: PostgresJournal) -> AsyncIterator[Engine]:
    settings = shard.serving.settings
    opening = open_on(
        journal,
        shard.source,
        windows_cap=settings.windows_cap,
        windows_total_cap=max(1, settings.windows_total_cap // journal.shard.of),
        late=(settings.late_hours + 1) * HOUR,
        damage=settings.damage,
    )
    async with opening as engine:
        engine.reach, engine.run_in_worker = settings.reach, shard.serving.jobs.run_in_worker
        engine.key_uses = read_key_uses(engine.folder)
        keep_lateness(engine.folder, engine.windows.late)
        yield engine


@asynccontextmanager
async def _given_requests(shard: ServedShard, engine: Engine) -> AsyncIterator[None]:
    """Answer the shard's requests from this engine."""
    serving = shard.serving
    settings, figures = serving.settings, serving.figures
    async with telemetry_of(engine, settings, figures) as wrapped:
        service = service_of(engine, settings, shard.search, serving.jobs, figures, serving.openid)
        shard.requests.serve(engine, wrapped(public_app(service)), answering(service))
        if engine.journal.shard.number == 1:
            serving.admin = create_admin_app(engine, settings, figures)
        yield


@asynccontextmanager
async def _watched(shard: ServedShard, following: Following) -> AsyncIterator[None]:
    """Run `_watch`; at the end, this node no longer announces itself, and knows no owner."""
    ended = asyncio.Event()
    watching = asyncio.create_task(_watch(shard, following, ended))
    try:
        yield
    finally:
        # Not cancelled: a heartbeat that is being written would announce a node that is gone.
        ended.set()
        await asyncio.wait([watching])
        shard.owner_address, shard.successors = "", {}
        if shard.given_to is None:
            shard.requests.learn("", None)
        shard.given_to = None
        shard.giving.clear()
        journal = following.journal
        with suppress(JournalError):
            await journal.query(partial(remove_node, node=journal.node))


async def _fill_in_turn(engine: Engine, serving: Serving) -> None:
    """Fill the windows. Shards with a snapshot are restored one after the other: the first can be owned
    while the others wait. What comes from the journal alone is read side by side.
    """
    has_snapshot = (engine.folder / FILE).exists()
    async with serving.restoring if has_snapshot else nullcontext():
        await fill_windows(engine, serving.progress)


async def _end_in_time(serving: Serving, journal: PostgresJournal) -> None:
    """Once the node is to stop, let nothing wait for the database for longer than `ENDS_S`."""
    await serving.stopping.wait()
    journal.end_within(ENDS_S)


async def _begin(shard: ServedShard, journal: PostgresJournal) -> None:
    """Wait until the journal contains at least what this machine has stored of it."""
    first = standing = await journal.standing()
    while standing.safe < first.last:
        address = shard.serving.address
        if not standing.is_held and await journal.take_over(SERVICE_PURPOSE, address):
            return
        await asyncio.sleep(_LOOK_S)
        standing = await journal.standing()
    journal.set_followed(standing.safe)


async def _watch(shard: ServedShard, following: Following, ended: asyncio.Event) -> None:
    """Check who owns the journal, if nothing else has for a while, and announce this node; until
    `ended` is set.
    """
    journal, requests, serving = following.journal, shard.requests, shard.serving
    announced_at = 0.0
    may_be_unreachable = journal.shard.number == 1 and is_loopback(serving.address)
    while not ended.is_set():
        # An owner learns from its appends and renewals that it no longer is one.
        if monotonic() - shard.looked_at > (
            _OWNER_UNSEEN_S if requests.decides else _LONGEST_UNSEEN_S
        ):
            try:
                _learn(shard, journal, await journal.standing())
            except Unavailable:
                requests.lose_sight()
                shard.owner_address = ""
        if monotonic() - announced_at > TELL_S:
            announced_at = monotonic()
            # A full database accepts no writes, but still tells who owns the journal.
            with suppress(Unavailable):
                await _tell(shard, following)
                if may_be_unreachable and out_of_reach(await journal.query(nodes_of)):
                    may_be_unreachable = False
                    log.warning("node_unreachable", address=serving.address, advice=_REACH)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await ended.wait()


def _learn(shard: ServedShard, journal: PostgresJournal, standing: JournalStanding) -> None:
    """Record who owns the journal, and how far this node is behind."""
    requests, behind = shard.requests, standing.last - journal.last_sequence()
    shard.looked_at = monotonic()
    shard.serving.figures.behind[journal.shard.number] = 0 if requests.decides else max(0, behind)
    is_there = standing.is_held and standing.owner != journal.node
    requests.learn(standing.owner, standing.address or None if is_there else None)
    shard.owner_address = standing.address if standing.is_held else ""


async def _tell(shard: ServedShard, following: Following) -> None:
    """Announce this node, and learn which others there are. Raises `Unavailable`."""
    journal = following.journal
    name = (journal.node, shard.serving.address, this_release())
    heartbeat = Heartbeat(*name, journal.last_sequence(), following.is_whole)

    def tell(connection: SqlConnection) -> tuple[bool, dict[str, str]]:
        is_awaited = awaits_standby(connection)
        write_heartbeat(connection, heartbeat)
        return is_awaited, successors(connection)

    shard.serving.figures.standby_awaited, shard.successors = await journal.query(tell)


async def _follow(shard: ServedShard, following: Following) -> bool:
    """Follow until this node owns the journal; return False if it is to stop. Raises as `catch_up`."""
    engine, journal, looked, due = following.engine, following.journal, 0.0, 0.0
    serving = shard.serving
    while not serving.stopping.is_set():
        taken = False
        with suppress(Unavailable):
            standing = await journal.standing()
            _learn(shard, journal, standing)
            if standing.last < following.counted:
                raise Interrupted("the database has come back older than it was")
            if standing.is_held and standing.owner != journal.node:
                if monotonic() >= due:
                    due = await _step(following, standing.safe)
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
                **shard.named(),
                accounts=len(engine.state.accounts),
                passed_over=len(engine.damage.passed_over),
                seconds=round(monotonic() - begun, 3),
            )
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await serving.stopping.wait()
    return False


async def _step(following: Following, up_to: int) -> float:
    """Count the journal's entries up to a sequence number; return when to count again, by
    `time.monotonic`. Raises as `catch_up`.
    """
    begun, before = monotonic(), following.counted
    await catch_up(following, up_to)
    return begun + (_STRIDE_S if following.counted - before >= _MANY else 0.0)


async def _own(shard: ServedShard, following: Following) -> bool:
    """Answer requests until the node is to stop, or is to give the journal away; then let another
    take over if one can at once. Returns whether the node is to stop.

    Raises `Fenced` if another process took the journal over.
    """
    engine, journal, serving = following.engine, following.journal, shard.serving
    requests = shard.requests
    stopping = asyncio.create_task(serving.stopping.wait())
    giving = asyncio.create_task(shard.giving.wait())
    async with sealing(journal):
        is_read_only = engine.damage.policy == "read-only"
        every_s = serving.settings.snapshot_minutes * 60
        work = journal.wait_until_lost() if is_read_only else own_journal(engine, every_s)
        working = asyncio.create_task(work)
        noting = asyncio.create_task(note_own_amendments(following))
        shard.search.stopping, requests.decides = False, True
        try:
            await asyncio.wait((working, stopping, giving), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                requests.decides = False
                await _lost(journal, working)
            is_ending = serving.stopping.is_set()
            if not is_ending or await journal.query(partial(has_successor, node=journal.node)):
                await _hand_over(shard, following, working, None if is_ending else shard.given_to)
            if is_ending:
                await _leave(shard)
            else:
                await _wait_for_taking(shard)
            return is_ending
        finally:
            # Requests still in flight are answered from the state as of now.
            shard.search.stopping, requests.decides = True, False
            for each in (working, noting, stopping, giving):
                each.cancel()
            await asyncio.wait((working, noting, stopping, giving))


async def _hand_over(
    shard: ServedShard, following: Following, working: asyncio.Task[None], to: str | None
) -> None:
    """Answer the requests in flight, end the owner's work, and release the journal: to the node `to`,
    or to any.
    """
    begun = monotonic()
    shard.search.stopping = True
    await shard.requests.cease(CEASE_S)
    working.cancel()
    await asyncio.wait([working])
    with suppress(JournalError):
        await write_entered(following.engine)
    await following.journal.hand_over(to)
    log.info("handed_over", **shard.named(), seconds=round(monotonic() - begun, 3))


async def _wait_for_taking(shard: ServedShard) -> None:
    """Wait until the journal that was given away has an owner with a known address."""
    for _ in range(round(TAKEN_S / _LOOK_S)):
        if shard.owner_address not in ("", shard.serving.address):
            return
        await asyncio.sleep(_LOOK_S)


async def _lost(journal: PostgresJournal, working: asyncio.Task[None]) -> None:
    """Raise what ended the owner's work: `Fenced` if another process took the journal over."""
    if journal.is_lost:
        raise Fenced("another process has taken the journal over")
    await working
