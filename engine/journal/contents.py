"""What lists hold, kept with the span of the sequence in which it was so.

A list has one content at a time and an import makes the next: filled beside the current one, then
swapped in by changing two rows. An entry holds within its content from `from_place` up to but not
including `to_place`.
"""

# ruff: noqa: S608 - only this module's constants are put into its queries

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice

from tollkeeper.engine.journal.entries import ListChange, ListEntry, Put, Remove, Swap
from tollkeeper.engine.journal.turns import turn

BATCH = 500
# How many entries one step removes: a few milliseconds.
STEP = 500
CURRENT = "SELECT id FROM list_contents WHERE account = ? AND list = ? AND to_place IS NULL AND from_place IS NOT NULL"


def apply(connection: sqlite3.Connection, account: int, sequence: int, change: ListChange) -> None:
    """Makes a change hold from a sequence number on, in the transaction that writes its entry."""
    match change:
        case Put():
            content = _current(connection, account, change.list) or _open(
                connection, account, change.list, sequence
            )
            _end(connection, content, sequence, [entry.value for entry in change.entries])
            _insert(connection, content, sequence, change.entries)
        case Remove():
            if current := _current(connection, account, change.list):
                _end(connection, current, sequence, change.values)
        case Swap():
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


def stage(connection: sqlite3.Connection, account: int, list_name: str, now: int) -> int:
    """A new content, not yet the list's; `now` in microseconds. It becomes so with a `Swap`."""
    cursor = connection.execute(
        "INSERT INTO list_contents (account, list, staged) VALUES (?, ?, ?)",
        (account, list_name, now),
    )
    return int(cursor.lastrowid or 0)


def fill(
    connection: sqlite3.Connection, content: int, entries: Iterable[ListEntry]
) -> Iterator[int]:
    """Puts entries into a staged content in short transactions; yields how many are in so far.

    Of entries with the same value the last one stays.
    """
    remaining, done = iter(entries), 0
    while batch := list(islice(remaining, BATCH)):
        with turn(connection):
            _insert(connection, content, 0, batch)
        done += len(batch)
        yield done


def read(
    connection: sqlite3.Connection, account: int, list_name: str, beyond: str | None
) -> Iterator[list[ListEntry]]:
    """The entries that hold now, in batches ordered by value, those after `beyond`."""
    content = _current(connection, account, list_name)
    first = "value > ?" if beyond is not None else "? IS NULL"
    while content is not None:
        rows = connection.execute(
            "SELECT value, columns, expires_at, note, by FROM list_entries"
            f" WHERE content = ? AND {first} AND to_place IS NULL ORDER BY value LIMIT {BATCH}",
            (content, beyond),
        ).fetchall()
        if rows:
            yield [ListEntry(*row) for row in rows]
        if len(rows) < BATCH:
            return
        first, beyond = "value > ?", rows[-1][0]


def purge_step(connection: sqlite3.Connection, account: int, floor: int) -> bool:
    """Removes some of what an account's lists no longer held at a sequence number; False when none
    was left.
    """
    ended = connection.execute(
        "DELETE FROM list_entries WHERE (content, value, from_place) IN ("
        "SELECT e.content, e.value, e.from_place FROM list_contents c JOIN list_entries e"
        " INDEXED BY ended ON e.content = c.id AND e.to_place <= ? WHERE c.account = ? LIMIT ?)",
        (floor, account, STEP),
    ).rowcount
    replaced = connection.execute(
        "SELECT id FROM list_contents WHERE account = ? AND to_place <= ? LIMIT 1",
        (account, floor),
    ).fetchone()
    return purge_content_step(connection, replaced) or ended > 0


def purge_content_step(connection: sqlite3.Connection, content: tuple[int] | None) -> bool:
    """Removes some of a content's entries, with the last of them the content; False for none."""
    if content is None:
        return False
    removed = connection.execute(
        "DELETE FROM list_entries WHERE (content, value, from_place) IN (SELECT content, value,"
        " from_place FROM list_entries WHERE content = ? LIMIT ?)",
        (*content, STEP),
    ).rowcount
    if removed < STEP:
        connection.execute("DELETE FROM list_contents WHERE id = ?", content)
    return True


def forget(connection: sqlite3.Connection, account: int, values: Iterable[str]) -> int:
    """Removes values from all that the account's lists ever held; how many entries."""
    return sum(
        connection.execute(
            "DELETE FROM list_entries WHERE value = ? AND content IN"
            " (SELECT id FROM list_contents WHERE account = ?)",
            (value, account),
        ).rowcount
        for value in values
    )


def _current(connection: sqlite3.Connection, account: int, list_name: str) -> int | None:
    row = connection.execute(CURRENT, (account, list_name)).fetchone()
    return None if row is None else int(row[0])


def _open(connection: sqlite3.Connection, account: int, list_name: str, sequence: int) -> int:
    cursor = connection.execute(
        "INSERT INTO list_contents (account, list, from_place, staged) VALUES (?, ?, ?, 0)",
        (account, list_name, sequence),
    )
    return int(cursor.lastrowid or 0)


def _end(
    connection: sqlite3.Connection, content: int, sequence: int, values: Iterable[str]
) -> None:
    connection.executemany(
        "UPDATE list_entries SET to_place = ?3"
        " WHERE content = ?1 AND value = ?2 AND to_place IS NULL AND from_place < ?3",
        [(content, value, sequence) for value in values],
    )


def _insert(
    connection: sqlite3.Connection, content: int, sequence: int, entries: Iterable[ListEntry]
) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO list_entries"
        " (content, value, columns, expires_at, note, by, from_place) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(content, e.value, e.columns, e.expires_at, e.note, e.by, sequence) for e in entries],
    )
