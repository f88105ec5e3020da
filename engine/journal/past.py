"""An account's past beside its entries, in SQLite: see `parts.Past`."""

# ruff: noqa: S608 - only constants of this package are put into its queries

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.entries import Kind, ListEntry
from tollkeeper.engine.journal.parts import Past

BATCH = 500
ENTRY = "value, columns, expires_at, note, by"
_CONTENT_AT = (
    "SELECT id FROM list_contents WHERE account = ? AND list = ? AND from_place <= ?"
    " AND coalesce(to_place > ?, TRUE)"
)
_ENTRIES_AT = (
    f"SELECT {ENTRY} FROM list_entries"
    " WHERE content = ? AND value > ? AND from_place <= ? AND coalesce(to_place > ?, TRUE)"
    " ORDER BY value LIMIT ?"
)
_FOUND_AT = (
    f"SELECT {ENTRY} FROM list_entries"
    " WHERE content = ? AND from_place <= ? AND coalesce(to_place > ?, TRUE) AND value IN ({})"
)
_OF_LIST = "content IN (SELECT id FROM list_contents WHERE account = ? AND list = ?)"
_BEGUN = f"SELECT from_place, {ENTRY} FROM list_entries WHERE {_OF_LIST} AND from_place > ?"
_ENDED = f"SELECT to_place, value FROM list_entries WHERE {_OF_LIST} AND to_place > ?"
_BEGINS = (
    "SELECT arrived FROM journal INDEXED BY by_account"
    f" WHERE account = ? AND kind = {Kind.PAYMENT:d} ORDER BY place LIMIT 1"
)


class Turnover(NamedTuple):
    """Entries that were put into a list, and values that left it, each with the sequence number of
    the change.

    Renewing an entry ends the one before it. What came with a whole content is not among them.
    """

    begun: list[tuple[int, ListEntry]]
    ended: list[tuple[int, str]]


class SqlitePast(Past):
    """`Past` in a data folder; each call reads on a connection of its own."""

    _folder: Path

    def found_at(
        self, account: int, list_name: str, sequence: int, values: Sequence[str]
    ) -> list[ListEntry]:
        """See `Past`."""
        with closing(schema.connect_for_reading(self._folder)) as connection:
            return found_at(connection, account, list_name, sequence, values)


def listed_at(
    connection: sqlite3.Connection, account: int, list_name: str, sequence: int
) -> Iterator[ListEntry]:
    """A list's entries as a payment at `sequence` met them, ordered by value."""
    content = _content_at(connection, account, list_name, sequence)
    if content is not None:
        yield from entries(connection, content, sequence)


def found_at(
    connection: sqlite3.Connection,
    account: int,
    list_name: str,
    sequence: int,
    values: Sequence[str],
) -> list[ListEntry]:
    """See `Past.found_at`."""
    content = _content_at(connection, account, list_name, sequence)
    if content is None:
        return []
    query = _FOUND_AT.format(", ".join("?" * len(values)))
    rows = connection.execute(query, (content, sequence, sequence, *values))
    return [ListEntry(*row) for row in rows]


def turnover(connection: sqlite3.Connection, account: int, list_name: str, after: int) -> Turnover:
    """How a list's entries changed beyond a sequence number."""
    of = (account, list_name, after)
    begun = [(sequence, ListEntry(*entry)) for sequence, *entry in connection.execute(_BEGUN, of)]
    return Turnover(begun, connection.execute(_ENDED, of).fetchall())


def begins(connection: sqlite3.Connection, account: int) -> int | None:
    """When (µs) the first payment that is still kept arrived; None when there is none."""
    first = connection.execute(_BEGINS, (account,)).fetchone()
    return None if first is None else int(first[0])


def entries(connection: sqlite3.Connection, content: int, sequence: int) -> Iterator[ListEntry]:
    """The entries that a content held at a sequence number, ordered by value."""
    beyond = ""
    while True:
        rows = connection.execute(
            _ENTRIES_AT, (content, beyond, sequence, sequence, BATCH)
        ).fetchall()
        for row in rows:
            yield ListEntry(*row)
        if len(rows) < BATCH:
            return
        beyond = rows[-1][0]


def _content_at(
    connection: sqlite3.Connection, account: int, list_name: str, sequence: int
) -> int | None:
    row = connection.execute(_CONTENT_AT, (account, list_name, sequence, sequence)).fetchone()
    return None if row is None else int(row[0])
