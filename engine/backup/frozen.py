"""Hold an SQLite database's file unchanged while others go on writing, so that it can be copied.

Commits go to a write-ahead log, and a checkpoint moves them into the file, but never past the
oldest read transaction. So once the log is empty, an open read transaction keeps the file itself
unchanged, and it can be copied as bytes, at the disk's speed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tollkeeper.engine.journal.contract import JournalError

_PATIENCE_S = 30.0
_PAUSE_S = 0.05


class Frozen(NamedTuple):
    """The file to read, the database's size in bytes, and a connection to query it."""

    file: BinaryIO
    size: int
    connection: sqlite3.Connection


@contextmanager
def frozen(path: Path) -> Iterator[Frozen]:
    """The database as of this moment.

    Writers are blocked for a few milliseconds at the beginning; then their log grows until the end.
    Raises `JournalError` for a file that can't be read.
    """
    # Closed last: closing any descriptor of a file releases all locks of the process on it.
    with path.open("rb") as file, closing(_connect(path)) as reading:
        try:
            _begin_reading(path, reading)
            (pages,) = reading.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = reading.execute("PRAGMA page_size").fetchone()
        except sqlite3.Error as error:
            raise JournalError(f"`{path}` can't be read: {error}") from error
        yield Frozen(file, pages * page_bytes, reading)


def _begin_reading(path: Path, reading: sqlite3.Connection) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    with closing(_connect(path)) as holding, closing(_connect(path)) as emptying:
        while True:
            # Moves most of the log into the file before any writer is blocked.
            emptying.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            holding.execute("BEGIN IMMEDIATE")
            try:
                # Busy when another copy is being made at this moment; then the counts mean nothing.
                busy, logged, copied = emptying.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if not busy and logged == copied:
                    reading.execute("BEGIN")
                    reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
                    return
            finally:
                holding.execute("ROLLBACK")
            if time.monotonic() > deadline:
                raise JournalError(
                    f"`{path}` is being read by somebody else for too long: try again"
                )
            time.sleep(_PAUSE_S)


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_PATIENCE_S)
