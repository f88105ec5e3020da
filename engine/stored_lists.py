"""What the journal keeps of lists beside their present entries: staged contents, and the past."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.entries import ListEntry

BATCH = 500

_STAGED = (
    "SELECT (SELECT count(*) FROM list_entries WHERE content = id) FROM list_contents"
    " WHERE id = ? AND account = ? AND list = ? AND from_place IS NULL"
)
_AT = (
    "SELECT id FROM list_contents WHERE account = ? AND list = ? AND from_place <= ?"
    " AND coalesce(to_place > ?, TRUE)"
)
_ENTRIES = (
    "SELECT value, columns, expires_at, note, by FROM list_entries"
    " WHERE content = ? AND value > ? AND from_place <= ? AND coalesce(to_place > ?, TRUE)"
    " ORDER BY value LIMIT ?"
)


def staged_count(folder: Path, account: int, name: str, content: int) -> int | None:
    """How many entries are staged for the list under `content`; None when none ever were."""
    with closing(schema.connect_for_reading(folder)) as connection:
        found = connection.execute(_STAGED, (content, account, name)).fetchone()
        return None if found is None else int(found[0])


def staged_entries(folder: Path, content: int) -> Iterator[ListEntry]:
    """The entries of a staged content. Blocks; for another thread than the event loop's."""
    with closing(schema.connect_for_reading(folder)) as connection:
        yield from _entries(connection, content, 0)


def entries_at(folder: Path, account: int, name: str, place: int) -> Iterator[ListEntry]:
    """A list's entries as a payment at `place` met them, as far back as the account keeps history.

    Blocks; for another thread than the event loop's.
    """
    with closing(schema.connect_for_reading(folder)) as connection:
        found = connection.execute(_AT, (account, name, place, place)).fetchone()
        if found is not None:
            yield from _entries(connection, found[0], place)


def _entries(connection: Connection, content: int, place: int) -> Iterator[ListEntry]:
    beyond = ""
    while True:
        rows = connection.execute(_ENTRIES, (content, beyond, place, place, BATCH)).fetchall()
        for row in rows:
            yield ListEntry(*row)
        if len(rows) < BATCH:
            return
        beyond = rows[-1][0]
