"""Whether what was derived from a journal is of the past that the journal has now.

A database that was restored, or that lost its last entries, gives their numbers to others: by numbers
alone, a file that counts what was lost would be taken as soon as the journal has grown as far again.
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
    """Whether this was the journal's newest entry: not said of one that was removed since, as that may
    have been another of the same number."""
    if newest.sequence > reads.last_sequence(connection):
        return False
    return reads.arrival_of(connection, newest.sequence) == newest.arrived
