"""The index's file beside the journal: derived from it, so it may be deleted at any time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tollkeeper.engine.journal.side_file import create_file
from tollkeeper.engine.journal.tail import Tail

INDEX_FILE = "search.db"
_VERSION = 7
"""Of the tables and of what is in them: an index of another version is made anew."""
_KEY_BYTES = 32
_CACHE_KIB = 64 * 1024
_PATIENCE_S = 30.0
_PAUSE_S = 0.005

_TABLES = """
CREATE TABLE followed (
  sequence INTEGER NOT NULL, arrived INTEGER NOT NULL, amendment INTEGER NOT NULL, key BLOB NOT NULL
);
CREATE TABLE postings (
  account INTEGER NOT NULL, facet INTEGER NOT NULL, block INTEGER NOT NULL, value INTEGER NOT NULL,
  members BLOB NOT NULL, PRIMARY KEY (account, facet, block, value)
) WITHOUT ROWID;
CREATE TABLE names (
  account INTEGER NOT NULL, facet INTEGER NOT NULL, value INTEGER NOT NULL, name TEXT NOT NULL,
  PRIMARY KEY (account, facet, value)
) WITHOUT ROWID;
CREATE TABLE minutes (minute INTEGER PRIMARY KEY, first INTEGER NOT NULL);
CREATE TABLE labels (
  account INTEGER NOT NULL, payment INTEGER NOT NULL, source TEXT NOT NULL, label TEXT NOT NULL,
  at INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (account, payment, source)
) WITHOUT ROWID;
CREATE TABLE outcomes (piece INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE totals (
  account INTEGER NOT NULL, block INTEGER NOT NULL, facet INTEGER NOT NULL, value INTEGER NOT NULL,
  counts BLOB NOT NULL, PRIMARY KEY (account, block, facet, value)
) WITHOUT ROWID;
CREATE TABLE settled (
  account INTEGER NOT NULL, block INTEGER NOT NULL, paid BLOB NOT NULL, hits BLOB NOT NULL,
  PRIMARY KEY (account, block)
) WITHOUT ROWID;
CREATE TABLE changed (
  account INTEGER NOT NULL, block INTEGER NOT NULL, sequence INTEGER NOT NULL,
  PRIMARY KEY (account, block)
) WITHOUT ROWID;
CREATE TABLE runs (
  account INTEGER NOT NULL, run INTEGER NOT NULL, value INTEGER NOT NULL, entries BLOB NOT NULL,
  PRIMARY KEY (account, run, value)
) WITHOUT ROWID;
CREATE TABLE runs_made (
  account INTEGER NOT NULL, run INTEGER NOT NULL, through INTEGER NOT NULL,
  PRIMARY KEY (account, run)
) WITHOUT ROWID;
CREATE INDEX runs_unmade ON runs_made(run) WHERE through < 9223372036854775807;
CREATE INDEX labels_in_order ON labels(account, sequence);
"""


class IndexPlace(NamedTuple):
    """The last sequence number and amendment taken in, and the key of the terms' hashes."""

    sequence: int
    arrived: int
    amendment: int
    key: bytes


def connect_to_write(folder: Path) -> sqlite3.Connection:
    """The index's file, maybe without tables. Raises `sqlite3.Error`."""
    path = folder / INDEX_FILE
    create_file(path)
    connection = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)
    _write_ahead(connection)
    # What a power cut takes is read from the journal again.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for who else changes a new file's mode, so this tries again."""
    deadline = monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(_PAUSE_S)
        else:
            return


def connect_to_read(folder: Path) -> sqlite3.Connection:
    """The index as it stands. Raises `sqlite3.Error`, also where there is none."""
    path = (folder / INDEX_FILE).absolute().as_uri()
    connection = sqlite3.connect(
        f"{path}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA query_only = ON")
    # Not mapped: around each page of a mapped file the system reads far more than is asked for.
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def inode_of(folder: Path) -> tuple[int, int] | None:
    """The device and number of the file, which one made later in its place has not; None without
    one."""
    try:
        found = (folder / INDEX_FILE).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether its tables are there, and of this version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == _VERSION)


def empty_index(connection: sqlite3.Connection, amendment: int) -> None:
    """Leaves empty tables and a new key, for one who has heard of amendments up to `amendment`."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        connection.execute(f"DROP TABLE {table}")
    for statement in _TABLES.split(";")[:-1]:
        connection.execute(statement)
    key = os.urandom(_KEY_BYTES)
    connection.execute("INSERT INTO followed VALUES (0, 0, ?, ?)", (amendment, key))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def read_index_place(connection: sqlite3.Connection) -> IndexPlace:
    """How far the index has come."""
    row = connection.execute("SELECT sequence, arrived, amendment, key FROM followed").fetchone()
    return IndexPlace(*row)


def is_of(followed: IndexPlace, tail: Tail) -> bool:
    """Whether it was this journal that the index has followed so far."""
    if followed.sequence > tail.last_sequence():
        return False
    arrived = tail.arrival_of(followed.sequence)
    return 0 in (arrived, followed.arrived) or arrived == followed.arrived


def note(connection: sqlite3.Connection, sequence: int, arrived: int, amendment: int) -> None:
    """Says how far the index has come; `arrived` is 0 where nothing has the sequence number."""
    connection.execute(
        "UPDATE followed SET sequence = ?, arrived = ?, amendment = ?",
        (sequence, arrived, amendment),
    )


def remove_index(folder: Path) -> None:
    """Deletes the index's files."""
    for ending in ("", "-wal", "-shm"):
        (folder / f"{INDEX_FILE}{ending}").unlink(missing_ok=True)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield
