"""The contents of lists; each entry has the span of sequence numbers in which it was in its list.

A list has one content at a time. An import fills another one, and two changed rows then replace the
list's content by it. An entry is in its list from the sequence number `from_place` on, up to but
not including `to_place`.
"""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Addition, ListChange, ListEntry, Removal, Replacement
from tollkeeper.engine.journal.short_transaction import short_transaction

_BATCH = 500
# How many entries one step removes: a few milliseconds.
_STEP = 500
CURRENT = (
    "SELECT id FROM list_contents"
    " WHERE account = ? AND list = ? AND to_place IS NULL AND from_place IS NOT NULL"
)
COLUMNS = "value, columns, expires_at, note, by"
CONTENT_AT = (
    "SELECT id FROM list_contents WHERE account = ? AND list = ? AND from_place <= ?"
    " AND coalesce(to_place > ?, TRUE)"
)
ENTRIES_AT = (
    f"SELECT {COLUMNS} FROM list_entries"
    " WHERE content = ? AND value > ? AND from_place <= ? AND coalesce(to_place > ?, TRUE)"
    " ORDER BY value LIMIT ?"
)
LIST_ENTRIES_AT = (
    f"SELECT {COLUMNS} FROM list_entries"
    " WHERE content = ? AND from_place <= ? AND coalesce(to_place > ?, TRUE) AND value IN ({})"
)
OF_LIST = "content IN (SELECT id FROM list_contents WHERE account = ? AND list = ?)"
BEGUN = f"SELECT from_place, {COLUMNS} FROM list_entries WHERE {OF_LIST} AND from_place > ?"
ENDED = f"SELECT to_place, value FROM list_entries WHERE {OF_LIST} AND to_place > ?"


class Turnover(NamedTuple):
    """Entries that were put into a list, and values that were removed from it, each with the
    sequence number of the change.

    Renewing an entry removes the former one. Entries of a replaced content are not included.
    """

    begun: list[tuple[int, ListEntry]]
    ended: list[tuple[int, str]]


def change_list(connection: SqlConnection, account: int, sequence: int, change: ListChange) -> None:
    """Apply a change from a sequence number on, in the transaction that writes its journal entry."""
    match change:
        case Addition():
            content = _current(connection, account, change.list) or _open(
                connection, account, change.list, sequence
            )
            _end(connection, content, sequence, [entry.value for entry in change.entries])
            _insert(connection, content, sequence, change.entries)
        case Removal():
            if current := _current(connection, account, change.list):
                _end(connection, current, sequence, change.values)
        case Replacement():
            connection.execute(
                "UPDATE list_contents SET to_place = ? WHERE account = ? AND list = ?"
                " AND to_place IS NULL AND from_place IS NOT NULL",
                (sequence, account, change.list),
            )
            connection.execute(
                "UPDATE list_contents SET from_place = ? WHERE id = ? AND account = ? AND list = ?"
                " AND from_place IS NULL",
                (sequence, change.content, account, change.list),
            )


def stage_content(connection: SqlConnection, account: int, list_name: str, now: int) -> int:
    """Create a content that a `Replacement` can make the list's; `now` in µs. Returns its id."""
    ((content,),) = connection.execute(
        "INSERT INTO list_contents (account, list, staged) VALUES (?, ?, ?) RETURNING id",
        (account, list_name, now),
    ).fetchall()
    return int(content)


def fill_content(
    connection: SqlConnection, content: int, entries: Iterable[ListEntry]
) -> Iterator[int]:
    """Put entries into a staged content in short transactions; yields how many are in so far.

    Of entries with the same value the last one counts.
    """
    remaining, done = iter(entries), 0
    while batch := list(islice(remaining, _BATCH)):
        with short_transaction(connection):
            _insert(connection, content, 0, batch)
        done += len(batch)
        yield done


def current_entries(
    connection: SqlConnection, account: int, list_name: str, beyond: str | None
) -> Iterator[list[ListEntry]]:
    """The list's present entries, in batches ordered by value, after `beyond`."""
    content = _current(connection, account, list_name)
    beyond = "" if beyond is None else beyond
    while content is not None:
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM list_entries"
            f" WHERE content = ? AND value > ? AND to_place IS NULL ORDER BY value LIMIT {_BATCH}",
            (content, beyond),
        ).fetchall()
        if rows:
            yield [ListEntry(*row) for row in rows]
        if len(rows) < _BATCH:
            return
        beyond = rows[-1][0]


def entries_at(
    connection: SqlConnection, account: int, list_name: str, sequence: int
) -> Iterator[ListEntry]:
    """A list's entries as of a sequence number, ordered by value."""
    content = _content_at(connection, account, list_name, sequence)
    if content is not None:
        yield from content_entries(connection, content, sequence)


def find_at(
    connection: SqlConnection,
    account: int,
    list_name: str,
    sequence: int,
    values: Sequence[str],
) -> list[ListEntry]:
    """The entries with these values, a few hundred at most, as of a sequence number."""
    content = _content_at(connection, account, list_name, sequence)
    if content is None:
        return []
    query = LIST_ENTRIES_AT.format(", ".join("?" * len(values)))
    rows = connection.execute(query, (content, sequence, sequence, *values))
    return [ListEntry(*row) for row in rows]


def turnover(connection: SqlConnection, account: int, list_name: str, after: int) -> Turnover:
    """How a list's entries changed after a sequence number."""
    span = (account, list_name, after)
    begun = [(sequence, ListEntry(*entry)) for sequence, *entry in connection.execute(BEGUN, span)]
    return Turnover(begun, connection.execute(ENDED, span).fetchall())


def content_entries(connection: SqlConnection, content: int, sequence: int) -> Iterator[ListEntry]:
    """A content's entries as of a sequence number, ordered by value."""
    beyond = ""
    while True:
        rows = connection.execute(
            ENTRIES_AT, (content, beyond, sequence, sequence, _BATCH)
        ).fetchall()
        for row in rows:
            yield ListEntry(*row)
        if len(rows) < _BATCH:
            return
        beyond = rows[-1][0]


def purge_list_entries(connection: SqlConnection, account: int, floor: int) -> bool:
    """Remove some entries that left the account's lists before a sequence number; False when none
    were left.
    """
    ended = connection.execute(
        "DELETE FROM list_entries WHERE (content, value, from_place) IN ("
        "SELECT e.content, e.value, e.from_place FROM list_contents c JOIN list_entries e"
        " INDEXED BY ended ON e.content = c.id AND e.to_place <= ? WHERE c.account = ? LIMIT ?)",
        (floor, account, _STEP),
    ).rowcount
    replaced = connection.execute(
        "SELECT id FROM list_contents WHERE account = ? AND to_place <= ? LIMIT 1",
        (account, floor),
    ).fetchone()
    return purge_content_step(connection, replaced) or ended > 0


def purge_content_step(connection: SqlConnection, content: tuple[int] | None) -> bool:
    """Remove some of a content's entries, and with the last of them the content; False for no
    content."""
    if content is None:
        return False
    removed = connection.execute(
        "DELETE FROM list_entries WHERE (content, value, from_place) IN (SELECT content, value,"
        " from_place FROM list_entries WHERE content = ? LIMIT ?)",
        (*content, _STEP),
    ).rowcount
    if removed < _STEP:
        connection.execute("DELETE FROM list_contents WHERE id = ?", content)
    return True


def forget_values(connection: SqlConnection, account: int, values: Iterable[str]) -> int:
    """Remove values from the present and past entries of the account's lists; returns how many."""
    return sum(
        connection.execute(
            "DELETE FROM list_entries WHERE value = ? AND content IN"
            " (SELECT id FROM list_contents WHERE account = ?)",
            (value, account),
        ).rowcount
        for value in values
    )


def _current(connection: SqlConnection, account: int, list_name: str) -> int | None:
    row = connection.execute(CURRENT, (account, list_name)).fetchone()
    return None if row is None else int(row[0])


def _content_at(
    connection: SqlConnection, account: int, list_name: str, sequence: int
) -> int | None:
    row = connection.execute(CONTENT_AT, (account, list_name, sequence, sequence)).fetchone()
    return None if row is None else int(row[0])


def _open(connection: SqlConnection, account: int, list_name: str, sequence: int) -> int:
    ((content,),) = connection.execute(
        "INSERT INTO list_contents (account, list, from_place, staged) VALUES (?, ?, ?, 0)"
        " RETURNING id",
        (account, list_name, sequence),
    ).fetchall()
    return int(content)


def _end(connection: SqlConnection, content: int, sequence: int, values: Iterable[str]) -> None:
    # Only the newest entry of a value can be open: older ones need not be read.
    connection.executemany(
        "UPDATE list_entries SET to_place = ? WHERE content = ? AND value = ? AND to_place IS NULL"
        " AND from_place = (SELECT max(from_place) FROM list_entries"
        " WHERE content = ? AND value = ? AND from_place < ?)",
        [(sequence, content, value, content, value, sequence) for value in values],
    )


def _insert(
    connection: SqlConnection, content: int, sequence: int, entries: Iterable[ListEntry]
) -> None:
    connection.executemany(
        "INSERT INTO list_entries (content, value, columns, expires_at, note, by, from_place)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (content, value, from_place) DO UPDATE SET"
        " columns = excluded.columns, expires_at = excluded.expires_at, note = excluded.note,"
        " by = excluded.by, to_place = NULL",
        [(content, e.value, e.columns, e.expires_at, e.note, e.by, sequence) for e in entries],
    )
