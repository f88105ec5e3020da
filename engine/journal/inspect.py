"""Check a whole journal for damage: unreadable pages, changed, missing and added entries."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from tollkeeper.engine.journal import checksums
from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.reads import ALL_COLUMNS, COLUMNS, last_sequence
from tollkeeper.engine.progress import unwatched

_BLOCK = (
    "SELECT seal.sequence, seal.entries - seal.removed, seal.total + seal.changed,"
    " count(journal.place), CAST(coalesce(sum(journal.checksum), 0) AS bigint)"
    " FROM (SELECT * FROM seals WHERE sequence > ? ORDER BY sequence LIMIT 1) AS seal"
    " LEFT JOIN journal NOT INDEXED ON journal.place > ? AND journal.place <= seal.sequence"
    " GROUP BY seal.sequence, seal.entries, seal.removed, seal.total, seal.changed"
)
_NEXT_SEAL = "SELECT min(sequence) FROM seals WHERE sequence > ?"
BATCH = 1000
_MOST = 100
"""The most faults that are listed; further ones are counted."""


class JournalFault(Struct, frozen=True):
    """A fault in words; `sequence` is the entry's, None when it concerns no single entry."""

    sequence: int | None
    text: str


@dataclass(slots=True)
class Inspection:
    """The result: how many entries were read, are in sealed blocks, and have no checksum.

    `kinds` counts the entries by kind; `more` counts the faults that are not in `faults`.
    """

    entries: int = 0
    sealed: int = 0
    without_checksum: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[JournalFault] = field(default_factory=list)
    more: int = 0

    def add(self, sequence: int | None, text: str) -> None:
        """One more fault."""
        if len(self.faults) < _MOST:
            self.faults.append(JournalFault(sequence, text))
        else:
            self.more += 1


Check = Callable[[Entry], str | None]
"""A check of an entry's contents: the fault in words, None without one."""


def inspect_journal(
    connection: SqlConnection,
    check: Check = lambda _entry: None,
    progress: Callable[[float], None] = unwatched,
) -> Inspection:
    """Inspect the journal. Each batch is read in a snapshot of its own, so a service may go on
    writing.

    `check` is called for each entry whose checksum is right; `progress` gets the share done.
    """
    found = Inspection()
    last = last_sequence(connection)
    _inspect_chain(connection, found)
    for row in _rows(connection, found, last):
        _inspect_entry(found, Entry._make(row[:-1]), row[-1], check)
        if found.entries % BATCH == 0:
            progress(row[0] / last)
    _inspect_blocks(connection, found)
    return found


def name_entry(entry: Entry) -> str:
    """How a fault names an entry; without the payment's id, which may be personal data."""
    kind = Kind(entry.kind).name.lower() if entry.kind in [*Kind] else f"kind {entry.kind}"
    return f"entry {entry.sequence} ({kind}, account {entry.account})"


def _inspect_entry(found: Inspection, entry: Entry, stored: int | None, check: Check) -> None:
    found.entries += 1
    found.kinds[Kind(entry.kind).name.lower() if entry.kind in [*Kind] else "unknown"] += 1
    found.without_checksum += stored is None
    if stored is not None and not _is_as_written(entry, stored):
        found.add(
            entry.sequence, f"{name_entry(entry)} is not as it was written: its checksum differs"
        )
    elif (wrong := check(entry)) is not None:
        found.add(entry.sequence, f"{name_entry(entry)} can't be read: {wrong}")


def _is_as_written(entry: Entry, stored: int) -> bool:
    # A column may hold anything in a damaged file, also another type.
    with suppress(ValueError, TypeError):
        return checksum(entry) == stored
    return False


def _rows(connection: SqlConnection, found: Inspection, last: int) -> Iterator[Any]:
    """All readable rows by sequence number; reading goes on after an unreadable page."""
    query = f"SELECT {ALL_COLUMNS} FROM journal NOT INDEXED WHERE place > ? AND place <= ?"
    after = 0
    while after < last:
        try:
            rows = connection.execute(
                f"{query} ORDER BY place LIMIT {BATCH}", (after, last)
            ).fetchall()
        except sqlite3.DatabaseError as error:
            after = yield from _read_around(connection, found, after, str(error))
            continue
        yield from rows
        if len(rows) < BATCH:
            return
        after = rows[-1][0]


def _read_around(
    connection: SqlConnection, found: Inspection, after: int, reason: str
) -> Generator[Any, None, int]:
    """The readable rows among the next sequence numbers; returns the number to go on from."""
    unreadable = []
    for sequence in range(after + 1, after + BATCH + 1):
        try:
            row = connection.execute(
                f"SELECT {COLUMNS}, checksum FROM journal NOT INDEXED WHERE place = ?", (sequence,)
            ).fetchone()
        except sqlite3.DatabaseError:
            unreadable.append(sequence)
        else:
            if row is not None:
                yield row
    if unreadable:
        found.add(
            unreadable[0],
            f"the pages of the entries {unreadable[0]} to {unreadable[-1]} can't be read: {reason}",
        )
    return after + BATCH


def _inspect_chain(connection: SqlConnection, found: Inspection) -> None:
    before = b""
    for seal in checksums.seals(connection):
        if seal.chain != checksums.chain(before, seal.sequence, seal.entries, seal.total):
            found.add(
                None,
                f"the chain is broken at entry {seal.sequence}: a seal before it was changed or is"
                " missing",
            )
        before = seal.chain


def _inspect_blocks(connection: SqlConnection, found: Inspection) -> None:
    begin = 0
    while True:
        try:
            # One statement reads one snapshot: what retention removes meanwhile is no fault.
            block = connection.execute(_BLOCK, (begin, begin)).fetchone()
        except sqlite3.DatabaseError:
            # Unreadable entries have been reported already.
            (sequence,) = connection.execute(_NEXT_SEAL, (begin,)).fetchone()
            block = None if sequence is None else (sequence, 0, 0, 0, 0)
        if block is None:
            return
        sequence, wanted, total_wanted, entries, total = block
        found.sealed += entries
        block_name = f"of the entries {begin + 1} to {sequence}, sealed together,"
        if entries < wanted:
            missing = f"{wanted - entries} {'is' if wanted - entries == 1 else 'are'} missing"
            found.add(None, f"{block_name} {entries} are there where {wanted} should be: {missing}")
        elif entries > wanted:
            many = f"{entries - wanted} too many"
            found.add(None, f"{block_name} {entries} are there where {wanted} should be: {many}")
        elif total != total_wanted:
            found.add(None, f"{block_name} some are not those that were sealed")
        begin = sequence
