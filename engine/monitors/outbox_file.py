"""The file that keeps the list of alerts and the outbox, beside the journal's.

It holds nothing that the journal does not: without it, the next start lists all alerts anew and
sends them again.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal import retention
from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.monitors import outbox

FILE = "alerts.db"

T = TypeVar("T")


class Outbox:
    """Short reads in the loop, writes one after the other in a thread of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = ThreadPoolExecutor(1, "outbox")
        self._writing = self._connect()
        self._reading = self._connect()
        self._reading.execute("PRAGMA query_only = ON")

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """A query that takes microseconds. Raises `Unavailable`."""
        try:
            return query(self._reading)
        except sqlite3.Error as error:
            raise Unavailable(f"`{self._path}` can't be read: {error}") from error

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does `work` in a transaction of its own; done once it is on disk. Raises `Unavailable`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, self._transact, work)

    async def empty_log(self) -> None:
        """Leaves nothing of what was overwritten in the write-ahead log. Raises `JournalError`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, retention.empty_log, self._writing)

    def close(self) -> None:
        """Ends once all that was asked for is done."""
        self._writer.shutdown()
        self._writing.close()
        self._reading.close()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            with self._writing:
                return work(self._writing)
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(f"`{self._path}` can't be written: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        return connection


@asynccontextmanager
async def open_outbox(folder: Path) -> AsyncIterator[Outbox]:
    """The outbox of a data folder whose lock is held. Raises `JournalError` for an unusable file."""
    path = folder / FILE
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        opened = Outbox(path)
        await opened.write(outbox.prepare)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield opened
    finally:
        opened.close()
