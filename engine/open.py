"""Open the engine on a data folder: its journal, the configuration folded from it, its windows."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from tollkeeper.engine.clock_watch import ClockWatch, since_machine_start
from tollkeeper.engine.enter_alerts import recover_alerts
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.filling import fill
from tollkeeper.engine.folder_key import KEY_FILE, FolderKey, NameUse, Spot, open_folder_key
from tollkeeper.engine.instants import now
from tollkeeper.engine.journal.appends import Arrivals
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import Damage, Policy, named_damage
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.lock import LOCK_PATIENCE_S
from tollkeeper.engine.journal.past import is_past, newest_entry
from tollkeeper.engine.journal.reads import claim_key, key_mark
from tollkeeper.engine.journal.side_file import belongs_to, claim_file
from tollkeeper.engine.journal.source import (
    JournalSource,
    folder_of,
    key_folder_of,
    open_source,
)
from tollkeeper.engine.journal.writer import WAITING_LIMIT
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.make_change import contents_of
from tollkeeper.engine.monitors.outbox_file import open_outbox
from tollkeeper.engine.programs.load import load_account
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.past_states import PastStates, configuration_at
from tollkeeper.engine.registry.sessions import Sessions
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadows.record import drain, record_shadows
from tollkeeper.engine.shipped import take_up_shipped
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.engine.velocity.first_seen_file import AGES_FILE, read_newest
from tollkeeper.engine.velocity.first_seen_store import (
    SeenTimesStore,
    open_seen_times,
    write_behind,
)
from tollkeeper.engine.velocity.windows import CAP, TOTAL_CAP, Windows
from tollkeeper.engine.webhook_secrets import settle_stored_secrets
from tollkeeper.engine.window_snapshot import read_snapshot, write_snapshot

SEAL_EVERY_S = 5.0


@asynccontextmanager
async def open_engine(
    source: JournalSource,
    purpose: str,
    clock: Callable[[], int] = now,
    *,
    patience_s: float = LOCK_PATIENCE_S,
    waiting_limit: int = WAITING_LIMIT,
    windows_cap: int = CAP,
    windows_total_cap: int = TOTAL_CAP,
    late: int = LATE,
    damage: Policy = "stop",
) -> AsyncIterator[Engine]:
    """Open everything except the windows, which `rebuild` fills.

    `purpose` is shown to other processes that find the journal locked. Raises `Locked` when the
    journal stays locked for `patience_s`, and `JournalError`.
    """
    opening = open_source(source, purpose, patience_s=patience_s, waiting_limit=waiting_limit)
    async with (
        opening as journal,
        open_on(
            journal,
            source,
            clock,
            windows_cap=windows_cap,
            windows_total_cap=windows_total_cap,
            late=late,
            damage=damage,
        ) as engine,
    ):
        await settle_as_owner(engine)
        async with sealing(journal):
            yield engine


@asynccontextmanager
async def open_on(
    journal: Journal,
    source: JournalSource,
    clock: Callable[[], int] = now,
    *,
    windows_cap: int = CAP,
    windows_total_cap: int = TOTAL_CAP,
    late: int = LATE,
    damage: Policy = "stop",
) -> AsyncIterator[Engine]:
    """Open the engine on an open journal without writing to it: another process may own it.

    What is appended later is not part of the engine's state. Raises `JournalError`."""
    folder, last = folder_of(source), journal.last_sequence()
    async with (
        open_outbox(source, journal) as outbox,
        _open_own_seen_times(folder, journal) as seen_times,
    ):
        with named_damage():
            state = await journal.query(partial(configuration_at, sequence=last))
        engine = Engine(
            source=source,
            folder=folder,
            folder_key=await _open_key(source, journal),
            journal=journal,
            outbox=outbox,
            windows=Windows(
                last,
                windows_cap,
                late,
                seen_times.open,
                total_cap=windows_total_cap,
            ),
            seen_times=seen_times,
            clients=Clients(),
            clock=clock,
            arrivals=Arrivals(clock, (await journal.query(newest_entry)).arrived),
            state=state,
            past_states=PastStates(journal),
            damage=Damage(damage),
            clock_watch=ClockWatch(journal.trusted_clock()),
            sessions=Sessions(clock(), journal.shard.number),
        )
        engine.clock_watch.look(clock(), since_machine_start())
        for account in state.accounts.values():
            engine.active[account.number] = load_account(account, contents_of(engine, account))
        background = [
            asyncio.create_task(record_shadows(engine)),
            asyncio.create_task(write_behind(seen_times, journal.wait_for_appends)),
        ]
        try:
            yield engine
            await drain(engine)
            with suppress(JournalError):
                # When this fails, the next start only reads more of the journal.
                await seen_times.write(journal.flush)
            with suppress(JournalError):
                await journal.flush()
                await write_snapshot(engine)
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background)
            # A node opens the journal again, and the collector would find this engine long after that.
            engine.windows.drop()


async def settle_as_owner(engine: Engine) -> None:
    """The writes with which a new owner of the journal begins. Raises `JournalError`."""
    if not isinstance(engine.source, Path):
        work = partial(claim_key, mark=_mark_of(engine.folder_key))
        await engine.journal.run(work)
    if engine.damage.policy != "read-only":
        before = engine.state
        await settle_stored_secrets(engine)
        if engine.state is not before:
            for number, active in engine.active.items():
                account = engine.state.accounts[number]
                engine.active[number] = load_account(account, active.contents, active.compiled())
    for number in engine.state.accounts:
        await take_up_shipped(engine, number)


async def _open_key(source: JournalSource, journal: Journal) -> FolderKey:
    """The folder's key; on a database, checked to be the key that every node of this journal has."""
    key = open_folder_key(key_folder_of(source))
    if not isinstance(source, Path):
        mark = await journal.query(key_mark)
        if mark not in ("", _mark_of(key)):
            raise JournalError(
                f"`{key_folder_of(source) / KEY_FILE}` is not the key under which this journal keeps its"
                " secrets: copy it from the folder of a node that has served it"
            )
    return key


def _mark_of(key: FolderKey) -> str:
    return key.name_of(NameUse.CURSOR, 0, Spot(0))


@asynccontextmanager
async def _open_own_seen_times(folder: Path, journal: Journal) -> AsyncIterator[SeenTimesStore]:
    """Open the first-seen times; a file of another journal, or of another past of it, is removed and
    filled anew.
    """
    path, identity = folder / AGES_FILE, journal.identity()
    with suppress(sqlite3.Error):
        if path.exists() and not (
            belongs_to(path, identity)
            and await journal.query(partial(is_past, newest=read_newest(path)))
        ):
            get_logger().warning("file_of_another_journal", file=str(path), done="made again")
            path.unlink()
    newest = partial(journal.query, newest_entry)
    async with open_seen_times(folder, journal.last_sequence(), newest) as seen_times:
        claim_file(path, identity)
        yield seen_times


@asynccontextmanager
async def sealing(journal: Journal) -> AsyncIterator[None]:
    """Within the block, seal the journal's new entries every few seconds, and once more at the end."""
    sealing = asyncio.create_task(_seal_blocks(journal))
    try:
        yield
        with suppress(JournalError):
            await journal.seal(at_least=1)
    finally:
        sealing.cancel()
        await asyncio.wait([sealing])


async def _seal_blocks(journal: Journal) -> None:
    while True:
        with suppress(JournalError):
            await journal.seal()
        await asyncio.sleep(SEAL_EVERY_S)


async def rebuild(engine: Engine, progress: Progress) -> None:
    """Fill every account's windows and monitors from the journal, then open for traffic."""
    await recover_alerts(engine)
    await fill_windows(engine, progress)
    engine.ready.set()


async def fill_windows(engine: Engine, progress: Progress) -> None:
    """Fill every account's windows from the journal."""
    all_active = list(engine.active.values())
    engine.seen_times.give_up_others(
        {
            (active.account.number, plan.digest)
            for active in all_active
            for plan in active.plans()
            if plan.ages
        }
    )
    engine.snapshot = await read_snapshot(engine)
    # All that is allocated here stays: garbage collections would only scan it again and again.
    gc.disable()
    try:
        for position, active in enumerate(all_active):

            def share(done: float, position: int = position) -> None:
                engine.rebuilt = (position + done) / len(all_active)
                progress(engine.rebuilt)

            await fill(engine, active.account.number, active.plans(), share)
    finally:
        gc.enable()
        engine.snapshot = None
    progress(1.0)
