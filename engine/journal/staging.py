"""List contents that imports fill, and the removal of those that no import needs any more.

A content that is given up first loses its list's name, in one step, so that a half-removed one can
never be put to use. Its entries are then removed a few at a time, between the commits of others.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tollkeeper.engine.journal import list_contents, schema
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.lock import no_import_runs
from tollkeeper.engine.journal.short_transaction import short_transaction

_GIVEN_UP = ""
"""The list name of contents that were given up."""
LONGEST_IMPORT = 24 * 3600 * 1_000_000
"""How long (µs) a staged content is kept where it can't be known whether its import still runs."""
_COUNT = (
    "SELECT (SELECT count(*) FROM list_entries WHERE content = id) FROM list_contents"
    " WHERE id = ? AND account = ? AND list = ? AND from_place IS NULL"
)


def connect(folder: Path) -> sqlite3.Connection:
    """A connection to fill contents with. It does not sync its commits, so that it never holds the
    write lock while the disk is busy: the contents are synced with the change that puts them to
    use.
    """
    connection = schema.connect(folder)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def count_staged(
    connection: SqlConnection, account: int, list_name: str, content: int
) -> int | None:
    """How many entries the staged content `content` of a list has; None when there is none."""
    found = connection.execute(_COUNT, (content, account, list_name)).fetchone()
    return None if found is None else int(found[0])


def discard(connection: SqlConnection, content: int) -> None:
    """Remove a staged content, unless a list uses it by now."""
    connection.execute(
        "UPDATE list_contents SET list = ? WHERE id = ? AND from_place IS NULL",
        (_GIVEN_UP, content),
    )
    remove_given_up(connection)


def give_up_contents(connection: SqlConnection, account: int) -> None:
    """Give up all contents of the account's lists, which `discard_abandoned` then removes."""
    connection.execute(
        "UPDATE list_contents SET list = ?, from_place = NULL, to_place = NULL WHERE account = ?",
        (_GIVEN_UP, account),
    )


def discard_abandoned(connection: SqlConnection, folder: Path) -> None:
    """Remove the contents of killed imports; while an import runs, only those given up before."""
    with no_import_runs(folder) as alone:
        if alone:
            connection.execute(
                "UPDATE list_contents SET list = ? WHERE from_place IS NULL AND list != ?",
                (_GIVEN_UP, _GIVEN_UP),
            )
    remove_given_up(connection)


def discard_old(connection: SqlConnection, before: int) -> None:
    """Remove what was staged before a time (µs), longer ago than any import takes."""
    connection.execute(
        "UPDATE list_contents SET list = ? WHERE from_place IS NULL AND list != ? AND staged < ?",
        (_GIVEN_UP, _GIVEN_UP, before),
    )
    remove_given_up(connection)


def remove_given_up(connection: SqlConnection) -> None:
    """Remove the contents that were given up, with their entries."""
    is_left = True
    while is_left:
        with short_transaction(connection):
            found = connection.execute(
                "SELECT id FROM list_contents WHERE from_place IS NULL AND list = ? LIMIT 1",
                (_GIVEN_UP,),
            ).fetchone()
            is_left = list_contents.purge_content_step(connection, found)
