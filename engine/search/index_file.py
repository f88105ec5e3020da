"""The index's file beside the journal. It is derived from the journal, so it may be deleted at any
time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.journal.side_file import create_file
from tollkeeper.engine.journal.tail import Tail

INDEX_FILE = "search.db"
_VERSION = 9
"""The version of the tables and their contents: an index of another version is made again."""
_KEY_BYTES = 32
_CACHE_KIB = 64 * 1024
_LOG_PAGES = 4096
"""Pages in the write-ahead log before a checkpoint. Steps change the same pages again and again: with
SQLite's default of 1,000 each step had them written twice and synced, which payments wait for.
"""
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
  total BLOB NOT NULL, PRIMARY KEY (account, block, facet, value)
) WITHOUT ROWID;
CREATE TABLE settled (
  account INTEGER NOT NULL, block INTEGER NOT NULL, paid BLOB NOT NULL, hits BLOB NOT NULL,
  PRIMARY KEY (account, block)
) WITHOUT ROWID;
CREATE TABLE commonest (
  account INTEGER NOT NULL, block INTEGER NOT NULL, facet INTEGER NOT NULL,
  value_list BLOB NOT NULL, counts BLOB NOT NULL, PRIMARY KEY (account, block, facet)
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
    """The last sequence number and the last amendment that were taken in, and the key of the terms'
    hashes.
    """

    sequence: int
    arrived: int
    amendment: int
    key: bytes


def connect_to_write(folder: Path) -> sqlite3.Connection:
    """Open the index's file to write; it may have no tables yet. Raises `sqlite3.Error`."""
    path = folder / INDEX_FILE
    create_file(path)
    connection = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)
    _write_ahead(connection)
    # What a power cut loses is read from the journal again.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set write-ahead logging. Retried, because SQLite doesn't wait while another process sets a
    new file's mode.
    """
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
    """Open the index to read. Raises `sqlite3.Error`, also if there is none."""
    path = (folder / INDEX_FILE).absolute().as_uri()
    connection = sqlite3.connect(
        f"{path}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA query_only = ON")
    # Not memory-mapped: the system reads far more than one page around each page fault.
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def inode_of(folder: Path) -> tuple[int, int] | None:
    """Return the file's device and inode, which tell it from a file made later in its place; None
    if there is none.
    """
    try:
        found = (folder / INDEX_FILE).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_in_place(folder: Path, inode: tuple[int, int] | None) -> bool:
    """Whether the folder still has the file of this inode; False for None, of a file that was gone
    when it was looked at.
    """
    return inode is not None and inode_of(folder) == inode


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there, and of this version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == _VERSION)


def empty_index(connection: sqlite3.Connection, amendment: int) -> None:
    """Leave empty tables and a new key; amendments up to `amendment` are taken as known."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        connection.execute(f"DROP TABLE {table}")
    for statement in _TABLES.split(";")[:-1]:
        connection.execute(statement)
    key = os.urandom(_KEY_BYTES)
    connection.execute("INSERT INTO followed VALUES (0, 0, ?, ?)", (amendment, key))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def read_index_place(connection: sqlite3.Connection) -> IndexPlace:
    """Return how far the index has come."""
    row = connection.execute("SELECT sequence, arrived, amendment, key FROM followed").fetchone()
    return IndexPlace(*row)


def is_of(followed: IndexPlace, tail: Tail) -> bool:
    """Whether the index was made from this journal."""
    return tail.is_past(Newest(followed.sequence, followed.arrived))


def note(connection: sqlite3.Connection, sequence: int, arrived: int, amendment: int) -> None:
    """Record how far the index has come; `arrived` is 0 if no entry has the sequence number."""
    connection.execute(
        "UPDATE followed SET sequence = ?, arrived = ?, amendment = ?",
        (sequence, arrived, amendment),
    )


def remove_index(folder: Path) -> None:
    """Delete the index's files."""
    for ending in ("", "-wal", "-shm"):
        (folder / f"{INDEX_FILE}{ending}").unlink(missing_ok=True)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield
