"""Reads of a journal by another process than its owner, which follows it by sequence numbers."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from typing import NamedTuple

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.entries import AMENDABLE, Entry, Kind
from tollkeeper.engine.journal.past import Newest, is_past
from tollkeeper.engine.journal.source import JournalSource, connect_for_reading

_FIRST = (
    f"SELECT place FROM journal INDEXED BY by_id WHERE account = ? AND id = ?"
    f" AND kind = {Kind.PAYMENT:d}"
)
_BEGINNING = (
    f"SELECT place FROM journal INDEXED BY by_id WHERE account = ? AND id >= ? AND id < ?"
    f" AND kind = {Kind.PAYMENT:d} LIMIT ?"
)
_AFTER = (
    f"SELECT {reads.COLUMNS} FROM journal NOT INDEXED WHERE place > ? AND place <= ?"
    f" AND kind IN ({', '.join(f'{kind:d}' for kind in AMENDABLE)}) ORDER BY place"
)
_KNOWN = f"SELECT {reads.KNOWN_COLUMNS} FROM journal WHERE place = ? AND kind = {Kind.PAYMENT:d}"


class Amendment(NamedTuple):
    """The entry at `sequence`, of one of the kinds `AMENDABLE`, was rewritten or removed. The id is
    a payment's, of a payment or an update, and else empty.
    """

    number: int
    account: int
    kind: int
    id: str
    sequence: int


class Tail:
    """Reads on a connection of its own; each call sees what is on disk at that moment."""

    def __init__(self, source: JournalSource) -> None:
        self._connection = connect_for_reading(source)

    def close(self) -> None:
        self._connection.close()

    def last_sequence(self) -> int:
        """The highest sequence number on disk, 0 in an empty journal."""
        return reads.last_sequence(self._connection)

    def records(self, after: int, up_to: int) -> list[Entry]:
        """Every account's entries of the kinds `AMENDABLE` with sequence numbers in (after, up_to]."""
        return list(map(Entry._make, self._connection.execute(_AFTER, (after, up_to))))

    def amendments(self, after: int, limit: int) -> list[Amendment]:
        """The amendments with numbers above `after`, oldest first."""
        rows = self._connection.execute(
            "SELECT number, account, kind, id, place FROM amendments"
            " WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return list(map(Amendment._make, rows))

    def lacks_amendments(self, after: int) -> bool:
        """Whether some amendments after the number `after` have been removed."""
        return reads.lacks_amendments(self._connection, after)

    def last_amendment(self) -> int:
        """The number of the last amendment ever made, 0 before the first."""
        return reads.last_amendment(self._connection)

    def payment_sequence(self, account: int, payment_id: str) -> int | None:
        """The sequence number of a payment's creation; None when no payment has the id."""
        row = self._connection.execute(_FIRST, (account, payment_id)).fetchone()
        return None if row is None else int(row[0])

    def payments_beginning(self, account: int, beginning: str, limit: int) -> list[int]:
        """Sequence numbers of payments with ids of this beginning, by id, at most `limit`."""
        beyond = beginning + reads.LAST_CHARACTER
        rows = self._connection.execute(_BEGINNING, (account, beginning, beyond, limit))
        return [sequence for (sequence,) in rows]

    def known(self, sequence: int, up_to: int) -> Entry | None:
        """The payment created at `sequence`, with the body of its last update up to `up_to`."""
        row = self._connection.execute(_KNOWN, (up_to, sequence)).fetchone()
        return None if row is None else Entry._make(row)

    def entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence number."""
        return reads.entry_at(self._connection, sequence)

    def arrival_of(self, sequence: int) -> int:
        """When the entry at a sequence number arrived (µs), 0 for one that isn't there."""
        return reads.arrival_of(self._connection, sequence)

    def is_past(self, newest: Newest) -> bool:
        """Whether this was the journal's newest entry."""
        return is_past(self._connection, newest)

    def sequence_at(self, time: int) -> int:
        """The sequence number of the first entry that arrived at `time` (µs) or later; without one,
        the last number plus one."""
        return reads.sequence_at(self._connection, time)

    def next_arrival(self, after: int) -> int | None:
        """When the next entry after a sequence number arrived (µs); None without one."""
        row = self._connection.execute(
            "SELECT arrived FROM journal WHERE place > ? ORDER BY place LIMIT 1", (after,)
        ).fetchone()
        return None if row is None else int(row[0])
