"""A database file that stands still while others go on writing: what its copy is read from.

SQLite writes ahead: commits go to a log beside the file, and a checkpoint brings them into it, but
never past what somebody still reads. So once the log is empty, the file itself is the database as
long as one transaction reads it, and can be copied as bytes, at the disk's own speed.
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
    """A file to be read as bytes, how many of them are the database, and a connection to query it."""

    file: BinaryIO
    size: int
    connection: sqlite3.Connection


@contextmanager
def frozen(path: Path) -> Iterator[Frozen]:
    """The database at this moment.

    Whoever writes is held up for a few milliseconds at the beginning; meanwhile their log grows.
    Raises `JournalError` for a file that can't be read.
    """
    # Closed last: to close any of a process' descriptors of a file ends its locks on the file.
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
            # Most of the log goes into the file before anybody is held up.
            emptying.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            holding.execute("BEGIN IMMEDIATE")
            try:
                # Busy when somebody else copies at this moment; then the counts say nothing.
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
