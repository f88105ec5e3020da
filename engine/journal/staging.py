"""Contents that are filled beside a list's own, to be swapped in; and what becomes of the others.

A staged content that no import needs any more first loses its list's name, in one step, so that
nobody can swap in a half of it; its entries go a few at a time, between the commits of who writes
meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tollkeeper.engine.journal import contents, past, schema
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.journal.lock import no_import_runs
from tollkeeper.engine.journal.parts import Staged
from tollkeeper.engine.journal.turns import turn

_NOBODYS = ""
_COUNT = (
    "SELECT (SELECT count(*) FROM list_entries WHERE content = id) FROM list_contents"
    " WHERE id = ? AND account = ? AND list = ? AND from_place IS NULL"
)


class SqliteStaged(Staged):
    """`Staged` in a data folder; each call works on a connection of its own."""

    _folder: Path

    def staged_count(self, account: int, list_name: str, content: int) -> int | None:
        """See `Staged`."""
        with closing(schema.connect_for_reading(self._folder)) as connection:
            found = connection.execute(_COUNT, (content, account, list_name)).fetchone()
            return None if found is None else int(found[0])

    def staged(self, content: int) -> Iterator[ListEntry]:
        """See `Staged`."""
        with closing(schema.connect_for_reading(self._folder)) as connection:
            yield from past.entries(connection, content, 0)

    def discard_abandoned(self) -> None:
        """See `Staged`."""
        with closing(schema.connect(self._folder)) as connection:
            discard_abandoned(connection, self._folder)


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that fills contents: what it commits is on disk with the change that swaps it in.

    So no transaction holds the write lock until a disk has answered.
    """
    connection = schema.connect(folder)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def discard(connection: sqlite3.Connection, content: int) -> None:
    """Takes one staged content away; one that a list holds by now stays."""
    connection.execute(
        "UPDATE list_contents SET list = ? WHERE id = ? AND from_place IS NULL",
        (_NOBODYS, content),
    )
    _remove_taken_away(connection)


def discard_abandoned(connection: sqlite3.Connection, folder: Path) -> None:
    """See `Staged.discard_abandoned`."""
    with no_import_runs(folder) as alone:
        if alone:
            connection.execute(
                "UPDATE list_contents SET list = ? WHERE from_place IS NULL AND list != ?",
                (_NOBODYS, _NOBODYS),
            )
    _remove_taken_away(connection)


def _remove_taken_away(connection: sqlite3.Connection) -> None:
    is_left = True
    while is_left:
        with turn(connection):
            found = connection.execute(
                "SELECT id FROM list_contents WHERE from_place IS NULL AND list = ? LIMIT 1",
                (_NOBODYS,),
            ).fetchone()
            is_left = contents.purge_content_step(connection, found)
