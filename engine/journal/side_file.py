"""An SQLite file beside the journal's, for data that can be derived from the journal again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from zlib import crc32

from tollkeeper.engine.journal import retention
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.threads import in_thread

Durability: TypeAlias = Literal["FULL", "NORMAL"]
"""`FULL`: a commit is on disk. `NORMAL`: a power cut may take the last commits."""

T = TypeVar("T")


class SideFile:
    """Reads of microseconds run in the event loop, writes one after another in a thread.

    Reads and writes raise `Unavailable` when the file can't be used; opening it raises
    `sqlite3.Error`.
    """

    def __init__(self, path: Path, durability: Durability) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, path.stem)
        self._writing = connect(path, durability)
        self._reading = connect(path, durability)
        self._reading.execute("PRAGMA query_only = ON")

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The result of a query that takes microseconds."""
        try:
            return query(self._reading)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction of its own; returns once it is committed."""
        return await in_thread(self._thread, partial(self._transact, work))

    async def empty_log(self) -> None:
        """Remove overwritten data from the write-ahead log. Raises `JournalError`."""
        await in_thread(self._thread, self._empty_log)

    def close(self) -> None:
        """Close the file once all writes are done."""
        self._thread.shutdown()
        self._writing.close()
        self._reading.close()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            with self._writing:
                return work(self._writing)
        except (sqlite3.Error, OSError) as error:
            raise self._failure(error) from error

    def _empty_log(self) -> None:
        try:
            retention.empty_log(self._writing)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Unavailable:
        return Unavailable(f"`{self._path}` can't be used: {error}")


def create_file(path: Path) -> None:
    """Create an empty file, readable by its owner alone, unless it exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def connect(path: Path, durability: Durability) -> sqlite3.Connection:
    """A connection with a write-ahead log that overwrites what it deletes."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def claim_file(path: Path, identity: str) -> None:
    """Record in the file which journal it belongs to."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {_mark(identity)}")


def belongs_to(path: Path, identity: str) -> bool:
    """Whether the file can be used with this journal: it belongs to it, is new, or of an older
    release.

    Raises `sqlite3.Error` for a file that can't be read.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
    return mark in (0, _mark(identity))


def _mark(identity: str) -> int:
    """The journal's mark for SQLite's `application_id`: 31 bits, never 0, which means no mark."""
    return crc32(identity.encode()) >> 1 | 1
