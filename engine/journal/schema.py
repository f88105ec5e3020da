"""The database file: its connections, and its tables by numbered migrations."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from sqlite_utils import Database, Migrations

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.lock import make_folder

DATABASE_FILE = "tollkeeper.db"
# Marks the file as ours ("Toll"), where SQLite has a place for it.
APPLICATION_ID = 0x546F6C6C
# How long a connection waits for another process's short transaction.
PATIENCE_S = 5.0
# Three payments of 2 KB share a page of this size; one of SQLite's own 4,096 bytes holds only one.
PAGE_BYTES = 8192
# How long the write-ahead log gets before it is brought into the file: a commit waits for it about
# 1 ms, where SQLite's own 1,000 pages make it 5 and more (docs/performance.md, "The journal").
LOG_PAGES = 64

migrations = Migrations("tollkeeper")
NEWEST = 8


@migrations(name="1")
def _the_journal(db: Database) -> None:
    db.table("journal").create(
        {
            "place": int,
            "account": int,
            "kind": int,
            "id": str,
            "arrived": int,
            "time": int,
            "body": bytes,
            "outcome": bytes,
        },
        pk="place",
        not_null={"account", "kind", "id", "arrived", "time", "body"},
    )
    # An update shares its payment's id: null, which a unique index never finds equal, lets it.
    db.execute(
        "CREATE UNIQUE INDEX by_id ON journal"
        f"(account, id, kind, CASE WHEN kind IN ({Kind.PAYMENT:d}, {Kind.EVENT:d}) THEN 0 END)"
    )
    # SQLite ends every index with the place, so each of these is also in order of the sequence.
    db.execute("CREATE INDEX by_account ON journal(account)")
    db.execute(f"CREATE INDEX changes ON journal(kind) WHERE kind = {Kind.CHANGE:d}")
    db.execute(f"CREATE INDEX changes_by_account ON journal(account) WHERE kind = {Kind.CHANGE:d}")


@migrations(name="2")
def _idempotency(db: Database) -> None:
    db.table("idempotency").create(
        {
            "place": int,
            "account": int,
            "key": str,
            "digest": bytes,
            "response": bytes,
            "arrived": int,
        },
        pk="place",
        not_null={"account", "key", "digest", "response", "arrived"},
    ).create_index(["account", "key"], unique=True)


@migrations(name="3")
def _contents_of_lists(db: Database) -> None:
    # A content being staged has no `from_place` yet.
    db.table("list_contents").create(
        {"id": int, "account": int, "list": str, "from_place": int, "to_place": int, "staged": int},
        pk="id",
        not_null={"account", "list", "staged"},
    ).create_index(["account", "list"])
    db.execute(
        "CREATE TABLE list_entries (content INTEGER NOT NULL, value TEXT NOT NULL, columns TEXT,"
        " expires_at INTEGER, note TEXT, by TEXT, from_place INTEGER NOT NULL, to_place INTEGER,"
        " PRIMARY KEY (content, value, from_place)) WITHOUT ROWID"
    )
    db.execute("CREATE INDEX ended ON list_entries(content, to_place) WHERE to_place IS NOT NULL")


@migrations(name="4")
def _requests_of_commands(db: Database) -> None:
    db.table("requests").create(
        {
            "id": int,
            "action": str,
            "author": str,
            "left_at": int,
            "progress": float,
            "answer": str,
            "done": int,
        },
        pk="id",
        not_null={"action", "author", "left_at", "progress", "done"},
        defaults={"progress": 0.0, "done": 0},
    )


@migrations(name="5")
def _amendments(db: Database) -> None:
    # Whoever follows the journal reads here which payments it must look at again. A number is never
    # used twice, so that a follower sees that some are gone (`expire` removes them after a day).
    db.execute(
        "CREATE TABLE amendments (number INTEGER PRIMARY KEY AUTOINCREMENT,"
        " account INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,"
        " place INTEGER NOT NULL, at INTEGER NOT NULL)"
    )
    for name, event in (("rewritten", "UPDATE OF body, outcome"), ("removed", "DELETE")):
        db.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON journal"  # noqa: S608 - constants alone
            f" WHEN OLD.kind IN ({Kind.PAYMENT:d}, {Kind.UPDATE:d})"
            " BEGIN INSERT INTO amendments(account, kind, id, place, at)"
            " VALUES (OLD.account, OLD.kind, OLD.id, OLD.place, 1000000 * unixepoch()); END"
        )


@migrations(name="6")
def _identity_and_checksums(db: Database) -> None:
    # Entries of before have no checksum: none is made for what may be damaged already.
    db.execute("ALTER TABLE journal ADD COLUMN checksum INTEGER")
    db.table("seals").create(
        {
            "sequence": int,
            "entries": int,
            "total": int,
            "chain": bytes,
            "removed": int,
            "changed": int,
        },
        pk="sequence",
        not_null={"entries", "total", "chain", "removed", "changed"},
        defaults={"removed": 0, "changed": 0},
    )
    # `clock` is the last moment (µs) at which the clock was found plausible.
    db.table("identity").create({"id": str, "clock": int}, pk="id", not_null={"clock"})
    last = db.execute("SELECT arrived FROM journal ORDER BY place DESC LIMIT 1").fetchone()
    db.execute("INSERT INTO identity VALUES (?, ?)", (uuid4().hex, last[0] if last else 0))


@migrations(name="7")
def _accesses(db: Database) -> None:
    db.execute(f"CREATE INDEX accesses_by_account ON journal(account) WHERE kind = {Kind.ACCESS:d}")


@migrations(name="8")
def _labels(db: Database) -> None:
    db.execute(f"CREATE INDEX labels_by_account ON journal(account) WHERE kind = {Kind.LABEL:d}")


def prepare(folder: Path) -> None:
    """Creates the file, readable by its owner alone, and brings its tables up to date.

    To be called under the folder's lock. Raises JournalError for a file that isn't ours, is
    corrupt, or was written by a newer version, and for one that is gone from a folder in use.
    """
    make_folder(folder)
    _refuse_lost(folder)
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


def require_current(folder: Path) -> None:
    """Checks, for a command beside a running service, that both know the same tables."""
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
    """A connection whose every commit is on disk, and whose deletions leave no bytes behind."""
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
    """A connection that sees what is committed and changes nothing."""
    connection = connect(folder)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _refuse_lost(folder: Path) -> None:
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
