"""The journal's database file: its connections, and the check that this release knows its tables."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.lock import make_folder

DATABASE_FILE = "tollkeeper.db"
# SQLite's application id, which marks the file as ours ("Toll").
APPLICATION_ID = 0x546F6C6C
# How long a connection waits for another process's short transaction.
PATIENCE_S = 5.0
# Three payments of 2 KB share a page of this size; one of SQLite's own 4,096 bytes holds only one.
PAGE_BYTES = 8192
# Pages in the write-ahead log before a checkpoint: a commit then waits about 1 ms for it, and 5 ms
# or more with SQLite's default of 1,000 (docs/performance.md, "The journal").
LOG_PAGES = 64
# The number of the newest migration. They are imported where a file is brought up to date or looked
# through: importing them takes a third of the start of a process that only reads.
NEWEST = 10


def prepare(folder: Path) -> None:
    """Create the file, readable by its owner alone, or migrate its tables to this release's.

    The caller holds the folder's lock. Raises JournalError for a file that isn't ours, is corrupt,
    or was written by a newer release, and for one that is missing from a folder in use.
    """
    from sqlite_utils import Database

    from tollkeeper.engine.journal.migrations import migrations

    make_folder(folder)
    _require_journal(folder)
    try:
        os.close(os.open(folder / DATABASE_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(connect(folder)) as connection:
            require_ours(connection, folder / DATABASE_FILE)
            if _application_id(connection) != APPLICATION_ID:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            migrations.apply(Database(connection))
    except OSError as error:
        raise JournalError(f"cannot open `{folder / DATABASE_FILE}`: {error.strerror}") from error
    except sqlite3.Error as error:
        raise JournalError(f"cannot open `{folder / DATABASE_FILE}`: {error}") from error


def require_data(folder: Path) -> None:
    """Check that the folder has a journal, for a command that must not begin one."""
    if not (folder / DATABASE_FILE).exists():
        raise JournalError(f"there is no service's data in `{folder}`: say where with --data")


def require_current(folder: Path) -> None:
    """Check that a command and the running service know the same tables."""
    from sqlite_utils import Database

    from tollkeeper.engine.journal.migrations import migrations

    require_data(folder)
    try:
        with closing(connect_for_reading(folder)) as connection:
            require_ours(connection, folder / DATABASE_FILE)
            pending = migrations.pending(Database(connection))
    except sqlite3.Error as error:
        raise JournalError(f"cannot open `{folder / DATABASE_FILE}`: {error}") from error
    if pending:
        raise JournalError(
            f"the service that uses `{folder}` is older than this command: restart it first"
        )


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that syncs each commit to disk and overwrites what it deletes."""
    connection = sqlite3.connect(
        f"{(folder / DATABASE_FILE).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=PATIENCE_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    return connection


def connect_for_reading(folder: Path) -> sqlite3.Connection:
    """A read-only connection."""
    connection = connect(folder)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _require_journal(folder: Path) -> None:
    path = folder / DATABASE_FILE
    if path.exists() and path.stat().st_size > 0:
        return
    left = sorted(each.name for each in folder.glob("*.db") if each != path)
    if left:
        state = "is empty" if path.exists() else "is missing"
        raise JournalError(
            f"`{path}` {state}, but `{left[0]}` beside it is in use: put the journal back, or"
            " restore a backup into another folder"
        )


def require_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raises JournalError for a file of another program or of a newer version."""
    from sqlite_utils import Database

    from tollkeeper.engine.journal.migrations import migrations

    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and _application_id(connection) != APPLICATION_ID:
        raise JournalError(f"`{path}` is not a Tollkeeper database")
    applied = [int(migration.name) for migration in migrations.applied(Database(connection))]
    if max(applied, default=0) > NEWEST:
        raise JournalError(
            f"`{path}` was written by a newer version: its tables are at {max(applied)},"
            f" this one knows {NEWEST}"
        )


def _application_id(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return int(application)
