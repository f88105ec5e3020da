"""Whether a file was derived from entries that the journal still has.

A database that was restored, or that lost its last entries, gives their sequence numbers to new ones.
Once it has grown as far again, a file that counts lost entries can't be told by its number alone.
"""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.connection import SqlConnection


class Newest(Struct, frozen=True, array_like=True):
    """The newest entry at some moment, by its number and its arrival (µs); 0 of an empty journal."""

    sequence: int = 0
    arrived: int = 0


def newest_entry(connection: SqlConnection) -> Newest:
    """The newest entry that is on disk."""
    row = connection.execute(
        "SELECT place, arrived FROM journal ORDER BY place DESC LIMIT 1"
    ).fetchone()
    return Newest() if row is None else Newest(*row)


def is_past(connection: SqlConnection, newest: Newest) -> bool:
    """Whether this entry is in the journal. False also for one that was removed since: another entry
    may have had its number."""
    if newest.sequence > reads.last_sequence(connection):
        return False
    return reads.arrival_of(connection, newest.sequence) == newest.arrived
