"""Follow a journal that another process owns, so that this process can take over at once.

Windows, lists and programs are kept in the owner's state as of the last entry that the standby has
too. When the owner rewrites or removes entries (an erasure, retention), the windows of their
account are not corrected entry by entry, but filled again from the journal.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby

from tollkeeper.engine.amendments_file import read_seen_amendment, write_seen_amendment
from tollkeeper.engine.enter_alerts import recover_alerts
from tollkeeper.engine.filling import fill, records_in
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.past import newest_entry
from tollkeeper.engine.journal.postgres.journal import PostgresJournal
from tollkeeper.engine.journal.reads import (
    TIME_TO_ARRIVAL,
    lacks_amendments,
    last_amendment,
    replay_entries,
    sequence_at,
    stretch_of,
)
from tollkeeper.engine.labels.label import verdict_in
from tollkeeper.engine.labels.payment_state import past_environments
from tollkeeper.engine.lists.contents import Contents, add_entries, build_contents, remove_values
from tollkeeper.engine.make_change import contents_of, put_in_force
from tollkeeper.engine.open import settle_as_owner
from tollkeeper.engine.privacy.deletion import finish_deletions
from tollkeeper.engine.privacy.erasure import take_up_erasures
from tollkeeper.engine.privacy.forgetting import drop_unfinished_erasures
from tollkeeper.engine.programs.load import load_account
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.registry.accounts import sharing
from tollkeeper.engine.registry.changes import (
    EntriesChanged,
    ListReplaced,
    PersonErased,
    RecordedChange,
)
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.sessions import Sessions
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import StoredRecords
from tollkeeper.engine.velocity.contract import Record
from tollkeeper.engine.window_snapshot import discard_snapshot, forget_in_snapshot

STEP = 500
"""How many sequence numbers are counted between two yields to the event loop."""
NOTE_S = 1.0
"""The seconds between two checks of an owner for amendments of its own."""
_FOLLOWED = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.CHANGE, Kind.LABEL)
"""The kinds of entries that windows, lists and programs depend on."""
_AMENDED = (
    "SELECT account, max(place), max(number) FROM amendments WHERE number > ? GROUP BY account"
)


class Interrupted(JournalError):  # noqa: N818 - named for what happened
    """A change was only partly applied: the engine must be opened again."""


@dataclass(slots=True)
class Following:
    """How far a follower is.

    `counted` is the last sequence number that windows, lists and programs have. Of the journal's
    amendments, `amended` is the number of the last one that was read, `noted` of the last one that
    the files in the folder take into account. `outdated` are the accounts whose entries were amended
    since their windows were filled.
    """

    engine: Engine
    journal: PostgresJournal
    counted: int
    amended: int
    noted: int
    outdated: set[int] = field(default_factory=set)
    is_whole: bool = False


async def begin_to_follow(engine: Engine, journal: PostgresJournal) -> Following:
    """Begin to follow, before the engine's windows are filled. Accounts that were amended since this
    node last followed are removed from the folder's files, so that they are filled from the journal
    alone. Raises `Unavailable`.
    """
    engine.seen_times.follow()
    noted = read_seen_amendment(engine.folder, journal.identity())
    amended = await journal.query(last_amendment)
    following = Following(engine, journal, journal.last_sequence(), amended, noted)
    if amended != noted:
        accounts = await journal.query(partial(_amended_accounts, after=noted))
        if accounts is None:
            discard_snapshot(engine)
            engine.seen_times.give_up_others(())
        else:
            await _forget_in_folder(engine, accounts)
        await _note(following, amended)
    return following


async def catch_up(following: Following, up_to: int) -> None:
    """Count the journal's entries up to a sequence number, and apply its changes.

    Raises `Unavailable`, after which it can be called again, `Interrupted`, `Damaged`.
    """
    while following.counted < up_to:
        to = min(up_to, following.counted + STEP)
        entries = await following.journal.query(partial(_entries, span=(following.counted, to)))
        for are_changes, group in groupby(entries, lambda entry: entry.kind == Kind.CHANGE):
            if are_changes:
                for change in recorded_changes(group):
                    await _follow_change(following, change)
            else:
                await _count(following, list(group))
        if following.counted < to:
            await _count_records(following, to, {})


async def look_for_amendments(following: Following) -> bool:
    """Read new amendments, and add the accounts whose windows may count amended entries to
    `outdated`; whether there were any amendments."""
    engine, journal = following.engine, following.journal
    after = following.amended
    new = await journal.query(lambda c: c.execute(_AMENDED, (after,)).fetchall())
    if new:
        await forget_in_snapshot(engine, [account for account, _, _ in new])
    for account, place, number in new:
        following.amended = max(following.amended, number)
        if account in engine.active and await _may_count(following, account, place):
            following.outdated.add(account)
    return bool(new)


async def fill_again(following: Following) -> None:
    """Fill the windows of `outdated` accounts again. Raises `Unavailable`."""
    engine = following.engine
    for account in list(following.outdated & engine.active.keys()):
        plans = engine.active[account].plans()
        await engine.windows.keep(account, ())
        drop_unfinished_erasures(engine, account)
        engine.seen_times.give_up_account(account)
        await fill(engine, account, plans, unwatched)
        following.outdated.discard(account)
    await _note(following, following.amended)


async def note_own_amendments(following: Following) -> None:
    """Note, until cancelled, the amendments that this process makes as the owner: what rewrites
    entries also updates the folder's files."""
    while True:
        await asyncio.sleep(NOTE_S)
        with suppress(Unavailable):
            amended = await following.journal.query(last_amendment)
            if not following.engine.rewriting:
                await _note(following, amended)


async def become_owner(following: Following) -> None:
    """Bring the engine of a process that has just taken the journal over to the journal's end, and
    accept traffic. Raises `JournalError`.
    """
    engine = following.engine
    await catch_up(following, following.journal.last_sequence())
    await look_for_amendments(following)
    await fill_again(following)
    engine.arrivals.newest = (await following.journal.query(newest_entry)).arrived
    await engine.seen_times.own(following.journal.flush)
    await settle_as_owner(engine)
    await finish_deletions(engine)
    await take_up_erasures(engine)
    await recover_alerts(engine)
    # New sessions: how long the former owner's were idle is not known here.
    engine.sessions = Sessions(engine.clock(), engine.journal.shard.number)
    engine.forwards_to, engine.follows = None, False
    engine.ready.set()


def _amended_accounts(connection: SqlConnection, after: int) -> list[int] | None:
    """The accounts of the amendments with numbers above `after`; None when some were removed."""
    if last_amendment(connection) < after or lacks_amendments(connection, after):
        return None
    return [account for account, _, _ in connection.execute(_AMENDED, (after,))]


async def _forget_in_folder(engine: Engine, accounts: Collection[int]) -> None:
    await forget_in_snapshot(engine, accounts)
    for account in accounts:
        engine.seen_times.give_up_account(account)


async def _note(following: Following, amended: int) -> None:
    """Write the folder's first-seen times, then the number of the last amendment that they, and the
    snapshot, take into account."""
    engine, journal = following.engine, following.journal
    if amended != following.noted:
        with suppress(JournalError):
            await engine.seen_times.write(journal.flush)
            write_seen_amendment(engine.folder, journal.identity(), amended)
            following.noted = amended


async def _may_count(following: Following, account: int, place: int) -> bool:
    """Whether the account's windows may count the entry at `place`."""
    engine = following.engine
    plans = engine.active[account].plans()
    if any(plan.ages for plan in plans):
        return True
    reach = max((plan.over or 0 for plan in plans), default=0) + engine.windows.late
    since = engine.clock() - reach - TIME_TO_ARRIVAL
    return place >= await following.journal.query(lambda c: sequence_at(c, since))


def _entries(connection: SqlConnection, span: tuple[int, int]) -> list[Entry]:
    """What windows, lists and programs depend on, with sequence numbers in (after, up_to]."""
    after, up_to = span
    return [*chain.from_iterable(replay_entries(connection, None, 0, after, up_to, _FOLLOWED))]


async def _follow_change(following: Following, change: RecordedChange) -> None:
    await _count_records(following, change.sequence, {})
    try:
        await _apply(following.engine, change)
    except Unavailable as error:
        raise Interrupted(f"what a change brings was not all read: {error}") from error
    if isinstance(change.change, PersonErased):
        following.outdated.add(change.account)


async def _count(following: Following, entries: Sequence[Entry]) -> None:
    """Count entries that are no changes."""
    by_account: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_account[entry.account].append(entry)
    records = await following.journal.query(partial(_records, following, by_account=by_account))
    await _count_records(following, entries[-1].sequence, records)


async def _count_records(
    following: Following, up_to: int, records: Mapping[int, Sequence[Record]]
) -> None:
    await following.engine.windows.follow(records, up_to)
    following.counted = up_to
    following.journal.set_followed(up_to)


def _records(
    following: Following, connection: SqlConnection, by_account: Mapping[int, Sequence[Entry]]
) -> dict[int, list[Record]]:
    """The records of entries that come next after `counted`, by account."""
    active = following.engine.active
    return {
        account: _account_records(following, connection, account, entries)
        for account, entries in by_account.items()
        if account in active
    }


def _account_records(
    following: Following, connection: SqlConnection, account: int, entries: Sequence[Entry]
) -> list[Record]:
    engine, journal, after = following.engine, following.journal, following.counted
    active, up_to = engine.active[account], entries[-1].sequence
    plans = active.plans()

    def label(id_: str, at: int = up_to) -> str | None:
        return verdict_in(journal.record_entries(account, Kind.LABEL, id_, at))

    environments = past_environments(engine, account)
    stored = StoredRecords(active.account, plans, environments.at, label)
    records = []
    if any(plan.labelled for plan in plans):
        for id_ in dict.fromkeys(entry.id for entry in entries if entry.kind == Kind.LABEL):
            states = journal.record_states(account, id_, after)
            if states and (before := label(id_, after)) != label(id_):
                latest = states[0]._replace(body=states[-1].body)
                records.append(stored.relabelled_record(latest, before))
    counted = [entry for entry in entries if stored.counts(entry)]
    if counted:
        stretch = stretch_of(connection, account, after, counted)
        records += records_in(stored, stretch, engine.damage)
    return records


async def _apply(engine: Engine, recorded: RecordedChange) -> None:
    """Apply a configuration change: put it in force, and fill the windows that it needs."""
    number, change = recorded.account, recorded.change
    if isinstance(change, EntriesChanged | ListReplaced):
        contents = await asyncio.to_thread(
            _changed_contents, engine, recorded.sequence, number, change
        )
        put_in_force(engine, recorded, (change.list, contents))
        return
    put_in_force(engine, recorded)
    if number not in engine.active:
        await engine.windows.keep(number, ())
        engine.seen_times.give_up_account(number)
        return
    if isinstance(change, PersonErased):
        # The erasure has changed the lists' entries, too: load them again.
        account, active = engine.state.accounts[number], engine.active[number]
        held = await asyncio.to_thread(contents_of, engine, account)
        engine.active[number] = load_account(account, held, active.compiled())
    for each in sharing(engine.state, number):
        plans = engine.active[each].plans()
        await fill(engine, each, plans, unwatched)
        await engine.windows.keep(each, plans)


def _changed_contents(
    engine: Engine, sequence: int, account: int, change: EntriesChanged | ListReplaced
) -> Contents:
    held = engine.active[account].contents[change.list]
    if isinstance(change, EntriesChanged) and change.count == len(change.values):
        entries = engine.journal.list_entries_at(account, change.list, sequence, change.values)
        return add_entries(remove_values(held, change.values), entries)
    batches = engine.journal.list_entries(account, change.list)
    return build_contents(held.spec, (entry for batch in batches for entry in batch))
