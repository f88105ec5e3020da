"""Purging what is old and rewriting what must be erased, in steps between two commits of the
writer.

Each step is a transaction of its own, so a process killed in the middle has done some steps and not
the others, and the next run does the rest. Overwritten and deleted bytes are zeroed in the file
(`secure_delete`), and after a rewrite the write-ahead log, which still has them, is emptied. Copies
that a file system, a disk or a backup keeps are not reached.
"""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal import list_contents, reads, requests, schema, staging
from tollkeeper.engine.journal.checksums import Alteration, alter, checksum, seal_up_to
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind

# A step ends as soon as it can after this time, well before the 50 ms that an append may wait.
STEP_S = 0.01
CHUNK = 20
# How long emptying the log may block the writer, and the pause before the next attempt.
EMPTY_MS = 20
EMPTY_PAUSE_S = 0.05
KEYS = 500
_NEVER = 2**62
"""Later (µs) than every event time."""
_LATER_OF = (
    "SELECT place FROM journal INDEXED BY by_id WHERE account = ? AND id IN ({})"
    f" AND kind IN ({Kind.UPDATE:d}, {Kind.LABEL:d}, {Kind.NOTE:d})"
)
_DELETE = "DELETE FROM journal WHERE place IN ({})"
_CHECKSUMS = "SELECT place, checksum FROM journal WHERE place IN ({})"


class OldRecord(NamedTuple):
    """A payment, an event, a shadow decision or an access that is to be removed."""

    sequence: int
    kind: int
    id: str


TakeTurns: TypeAlias = Callable[[Sequence[OldRecord]], AbstractAsyncContextManager[None]]
"""Given some records, the block within which they are removed."""

T = TypeVar("T")
_Work = Callable[[SqlConnection], T]


class _Run(Protocol):
    """Runs work on a connection, outside the event loop."""

    def __call__(self, work: _Work[T], /) -> Awaitable[T]: ...


def at_once(_records: Sequence[OldRecord]) -> AbstractAsyncContextManager[None]:
    """Takes no turns: nothing changes the records meanwhile."""
    return nullcontext()


async def purge_records(
    read: _Run, write: _Run, account: int, before: int, take_turns: TakeTurns = at_once
) -> int:
    """Remove records with event times before `before`; returns how many.

    Records are payments with their updates, labels and notes, events, shadow decisions and
    accesses.
    """
    find = partial(_find_old, account=account, before=before, limit=KEYS)
    after, removed = 0, 0
    while batch := await read(partial(find, after=after)):
        after = batch[-1].sequence
        async with take_turns(batch):
            removed += await _in_steps(write, batch, partial(_delete, account=account))
    return removed


async def holds_older(read: _Run, account: int, before: int) -> bool:
    """Whether there are records with event times before `before`."""
    return bool(await read(partial(_find_old, account=account, before=before, after=0, limit=1)))


async def purge_lists(read: _Run, write: _Run, account: int, before: int) -> None:
    """Remove entries that left their lists before `before`."""
    floor = await read(lambda connection: reads.sequence_at(connection, before))
    while await write(partial(list_contents.purge_list_entries, account=account, floor=floor)):
        pass


async def expire(write: _Run, now: int) -> None:
    """Remove idempotency keys and commands' requests older than 24 hours."""
    before = now - DAY
    for step in (_delete_keys, _delete_amendments, requests.purge_requests):
        while await write(partial(step, before=before)):
            pass


async def rewrite(
    read: _Run,
    write: _Run,
    account: int,
    change: Callable[[Entry], Entry],
    kinds: Collection[Kind],
    containing: Collection[str],
    at: Sequence[int],
    after: int,
) -> int:
    """Rewrite the account's entries as `Journal.rewrite` says; returns how many changed."""
    rewritten, before = 0, -1
    for first in range(0, len(at), KEYS):
        chosen = at[first : first + KEYS]
        entries = await read(
            partial(reads.entries_at, account=account, sequences=chosen, kinds=kinds)
        )
        rewritten += await _in_steps(write, _apply_change(entries, change), _update)
    find = partial(
        _find_changed, account=account, change=change, kinds=kinds, containing=containing
    )
    # Traffic goes on meanwhile: what it writes is read as well, until nothing is left to change.
    while rewritten != before:
        last, before = await read(reads.last_sequence), rewritten
        while after < last:
            after, changed = await read(partial(find, after=after, last=last))
            rewritten += await _in_steps(write, changed, _update)
    return rewritten


async def forget_keys(write: _Run, sequences: Sequence[int]) -> int:
    """Remove the idempotency keys of the entries with these sequence numbers; returns how many."""
    return await _in_steps(write, sequences, _delete_keys_at)


async def forget_account(read: _Run, write: _Run, account: int) -> int:
    """Remove all of an account's entries but its first and last change; returns how many.

    The newest changes go first, so that what is left at any time is a valid history.
    """
    removed = await purge_records(read, write, account, _NEVER)
    await purge_lists(read, write, account, _NEVER)
    while await write(partial(_delete_keys_of, account=account)):
        pass
    await write(partial(staging.give_up_contents, account=account))
    changes = [sequence for (sequence,) in await read(partial(_find_changes, account=account))]
    return removed + await _in_steps(write, changes[1:-1][::-1], _delete_entries)


async def _in_steps(
    write: _Run, items: Sequence[T], work: Callable[[SqlConnection, Sequence[T]], int]
) -> int:
    """Call `work` on all items, as many at a time as fit into one step; returns the sum of results."""
    position, total = 0, 0

    def step(connection: SqlConnection) -> None:
        nonlocal position, total
        deadline = time.monotonic() + STEP_S
        while position < len(items):
            total += work(connection, items[position : position + CHUNK])
            position += CHUNK
            if time.monotonic() >= deadline:
                return

    while position < len(items):
        await write(step)
    return total


def _find_old(
    connection: SqlConnection, account: int, before: int, after: int, limit: int
) -> list[OldRecord]:
    rows = connection.execute(
        "SELECT place, kind, id FROM journal INDEXED BY by_account"
        " WHERE account = ? AND place > ? AND place < ? AND time < ? AND kind IN (?, ?, ?, ?)"
        " ORDER BY place LIMIT ?",
        (
            account,
            after,
            reads.sequence_at(connection, before + reads.TIME_TO_ARRIVAL),
            before,
            Kind.PAYMENT,
            Kind.EVENT,
            Kind.SHADOW,
            Kind.ACCESS,
            limit,
        ),
    )
    return list(map(OldRecord._make, rows))


def _delete(connection: SqlConnection, old: Sequence[OldRecord], account: int) -> int:
    sequences = [each.sequence for each in old]
    if paid := [each.id for each in old if each.kind == Kind.PAYMENT]:
        later = connection.execute(_LATER_OF.format(_marks(paid)), (account, *paid))
        sequences += [sequence for (sequence,) in later]
    return _delete_entries(connection, sequences)


def _delete_entries(connection: SqlConnection, sequences: Sequence[int]) -> int:
    removed = 0
    for first in range(0, len(sequences), KEYS):
        chosen = sequences[first : first + KEYS]
        seal_up_to(connection, max(chosen))
        alter(connection, [each._replace(after=None) for each in _checksums(connection, chosen)])
        removed += connection.execute(_DELETE.format(_marks(chosen)), chosen).rowcount
    return removed


def _delete_keys(connection: SqlConnection, before: int) -> int:
    # Keys are in the order of their sequence numbers, so the first ones are the oldest.
    return connection.execute(
        "DELETE FROM idempotency WHERE arrived < ?"
        " AND place <= (SELECT max(place) FROM"
        " (SELECT place FROM idempotency ORDER BY place LIMIT ?) AS first)",
        (before, KEYS),
    ).rowcount


def _delete_amendments(connection: SqlConnection, before: int) -> int:
    return connection.execute(
        "DELETE FROM amendments WHERE at < ? AND number <= (SELECT max(number) FROM"
        " (SELECT number FROM amendments ORDER BY number LIMIT ?) AS first)",
        (before, KEYS),
    ).rowcount


def _delete_keys_of(connection: SqlConnection, account: int) -> int:
    return connection.execute(
        "DELETE FROM idempotency WHERE place IN"
        " (SELECT place FROM idempotency WHERE account = ? LIMIT ?)",
        (account, KEYS),
    ).rowcount


def _find_changes(connection: SqlConnection, account: int) -> list[tuple[int]]:
    return connection.execute(
        "SELECT place FROM journal INDEXED BY changes_by_account"
        f" WHERE account = ? AND kind = {Kind.CHANGE:d} ORDER BY place",
        (account,),
    ).fetchall()


def _delete_keys_at(connection: SqlConnection, sequences: Sequence[int]) -> int:
    return connection.executemany(
        "DELETE FROM idempotency WHERE place = ?", [(sequence,) for sequence in sequences]
    ).rowcount


def _find_changed(
    connection: SqlConnection,
    account: int,
    after: int,
    last: int,
    change: Callable[[Entry], Entry],
    kinds: Collection[Kind],
    containing: Collection[str],
) -> tuple[int, list[Entry]]:
    chosen = " OR ".join(f"kind = {kind:d}" for kind in kinds)
    end = min(last, after + reads.TEXT_SCAN) if containing else last
    rows = connection.execute(
        f"SELECT {reads.COLUMNS} FROM journal INDEXED BY {reads.index_of(kinds)}"
        f" WHERE account = ? AND place > ? AND place <= ? AND ({chosen})"
        f" AND {reads.contains(containing)} ORDER BY place LIMIT ?",
        (account, after, end, *reads.twice(containing), reads.BATCH),
    ).fetchall()
    entries = list(map(Entry._make, rows))
    last_read = entries[-1].sequence if len(entries) == reads.BATCH else end
    return last_read, _apply_change(entries, change)


def _apply_change(entries: Iterable[Entry], change: Callable[[Entry], Entry]) -> list[Entry]:
    return [new for entry in entries if (new := change(entry)) != entry]


def _update(connection: SqlConnection, entries: Sequence[Entry]) -> int:
    after = {entry.sequence: checksum(entry) for entry in entries}
    before = _checksums(connection, after)
    alter(connection, [each._replace(after=after[each.sequence]) for each in before])
    return connection.executemany(
        "UPDATE journal SET body = ?, outcome = ?, checksum = ? WHERE place = ?",
        [(entry.body, entry.outcome, after[entry.sequence], entry.sequence) for entry in entries],
    ).rowcount


def _checksums(connection: SqlConnection, sequences: Collection[int]) -> list[Alteration]:
    rows = connection.execute(_CHECKSUMS.format(_marks(sequences)), [*sequences])
    return [Alteration(sequence, stored, stored) for sequence, stored in rows]


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def empty_log(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log's contents into the file, then truncate the log.

    The first checkpoint copies without blocking the writer and leaves little for the second. The
    second blocks the writer while it waits for running reads, so it gives up soon and tries again.
    Raises JournalError when a read runs too long.
    """
    (patience_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    deadline = time.monotonic() + schema.PATIENCE_S
    try:
        connection.execute(f"PRAGMA busy_timeout = {EMPTY_MS}")
        while True:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
            if time.monotonic() > deadline:
                break
            time.sleep(EMPTY_PAUSE_S)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
    raise JournalError("the write-ahead log still holds what was erased: run this again")
