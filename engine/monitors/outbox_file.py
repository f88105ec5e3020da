"""The store of alerts and outbox: an SQLite file of its own, or tables in the journal's database.

If the file is lost, the next start enters and sends all alerts again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.side_file import SideFile, belongs_to, claim_file, create_file
from tollkeeper.engine.journal.source import JournalSource, connect_for_reading
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Outbox

ALERTS_FILE = "alerts.db"
T = TypeVar("T")
_WHAT_TO_DO = "restore a backup, or move this file away to list and send all alerts again"


class OutboxFile(Outbox):
    """An `Outbox` in a file; its reads take microseconds."""

    def __init__(self, file: SideFile) -> None:
        self._file = file

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        return self._file.read(query)

    async def write(self, work: Callable[[SqlConnection], T]) -> T:
        return await self._file.write(work)

    async def empty_log(self) -> None:
        await self._file.empty_log()


class OutboxInJournal(Outbox):
    """An `Outbox` in tables of the journal's database."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        return await self._journal.query(query)

    async def write(self, work: Callable[[SqlConnection], T]) -> T:
        return await self._journal.run(work)

    async def empty_log(self) -> None:
        """Does nothing: overwritten bytes stay in the database's files until they are vacuumed."""


@asynccontextmanager
async def open_outbox(source: JournalSource, journal: Journal) -> AsyncIterator[Outbox]:
    """Open the outbox of a journal whose lock is held.

    Raises `JournalError` for a file that is unusable, belongs to another journal, or is ahead of
    this one: alerts would silently be lost.
    """
    if not isinstance(source, Path):
        yield OutboxInJournal(journal)
        return
    path = source / ALERTS_FILE
    try:
        create_file(path)
        if not belongs_to(path, journal.identity()):
            raise JournalError(f"`{path}` belongs to another journal: {_WHAT_TO_DO}")
        file = SideFile(path, "FULL")
        await file.write(outbox.create_tables)
        claim_file(path, journal.identity())
        known, last = file.read(outbox.entered_up_to), journal.last_sequence()
        if known > last:
            file.close()
            raise JournalError(
                f"`{path}` knows of entry {known}, but the journal ends with {last}: it is an older"
                f" copy, or one without its `-wal` file; {_WHAT_TO_DO}"
            )
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield OutboxFile(file)
    finally:
        file.close()


def read_outbox(source: JournalSource, query: Callable[[SqlConnection], T]) -> T:
    """The result of a query on the outbox, whether or not a service is running on it.

    Raises `JournalError`.
    """
    if not isinstance(source, Path):
        with closing(connect_for_reading(source)) as connection:
            return query(connection)
    path = source / ALERTS_FILE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found:
            return query(found)
    except sqlite3.Error as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
