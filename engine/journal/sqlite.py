"""The journal in one SQLite file: one writing thread, and reads that don't block the event loop.

Point reads use an index, on a connection of the event loop's own, and take microseconds. Pages,
purging and rewriting read in other threads, one bounded batch at a time; no snapshot outlives its
batch, so the write-ahead log can always be emptied.
"""

# ruff: noqa: S608 - only placeholders are put into the queries

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal import list_contents, reads, retention, schema, staging
from tollkeeper.engine.journal.appends import Append, InFlight, UnusedIds
from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Taken, Unavailable
from tollkeeper.engine.journal.damage import named_damage
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.lock import LOCK_PATIENCE_S, lock
from tollkeeper.engine.journal.writer import WAITING_LIMIT, Writer

ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
ROWS = 64
"""The most rows of one statement: the thread releases the interpreter's lock once for each statement."""
INSERT_KEY = "INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?, ?)"

T = TypeVar("T")


@asynccontextmanager
async def open_journal(
    folder: Path,
    purpose: str,
    *,
    patience_s: float = LOCK_PATIENCE_S,
    waiting_limit: int = WAITING_LIMIT,
) -> AsyncIterator[SqliteJournal]:
    """Lock the data folder and open its journal, until the end of the block.

    Raises `Locked` when another process holds the folder, JournalError for a file that can't be
    used.
    """
    with lock(folder, purpose, patience_s):
        schema.prepare(folder)
        with named_damage():
            journal = SqliteJournal(folder, waiting_limit)
        try:
            yield journal
        finally:
            await journal.close()


class SqliteStore:
    """An `EntryStore` in a data folder; it connects when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None

    def write(self, batch: Sequence[Append]) -> dict[int, Exception]:
        connection = self._require_connection()
        try:
            if len(batch) <= ROWS and not any(map(_is_more_than_a_row, batch)):
                # A single statement is a transaction: the thread takes the interpreter's lock once.
                _insert_rows(connection, batch)
                return {}
            connection.execute("BEGIN IMMEDIATE")
            _insert(connection, batch)
        except (sqlite3.IntegrityError, ValueError, OverflowError):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        else:
            connection.execute("COMMIT")
            return {}
        refused: dict[int, Exception] = {}
        connection.execute("BEGIN IMMEDIATE")
        for append in batch:
            connection.execute("SAVEPOINT entry")
            try:
                _insert(connection, [append])
            except (sqlite3.IntegrityError, ValueError, OverflowError) as error:
                connection.execute("ROLLBACK TO entry")
                refused[append.entry.sequence] = _refusal(append.entry, error)
            connection.execute("RELEASE entry")
        connection.execute("COMMIT")
        return refused

    def perform(self, work: Callable[[SqlConnection], T]) -> tuple[T, bool]:
        try:
            connection = self._require_connection()
            before = connection.total_changes
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
            return result, connection.total_changes > before
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(f"the journal can't be written: {error}") from error

    def disconnect(self) -> None:
        # An open transaction is rolled back.
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _require_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = schema.connect(self._folder)
        return self._connection


@cache
def _insert_of(rows: int) -> str:
    return f"INSERT INTO journal ({reads.ALL_COLUMNS}) VALUES {', '.join([ROW] * rows)}"


def _is_more_than_a_row(append: Append) -> bool:
    return append.idempotency is not None or bool(append.contents)


def _insert_rows(connection: sqlite3.Connection, batch: Sequence[Append]) -> None:
    rows = [_row(append.entry) for append in batch]
    connection.execute(_insert_of(len(rows)), [*chain.from_iterable(rows)])


def _row(entry: Entry) -> tuple[object, ...]:
    sequence, account, kind, *others = entry
    # `int`, as Python's module would first search for an adapter of a subclass such as `IntEnum`.
    return sequence, account, int(kind), *others, checksum(entry)


def _insert(connection: sqlite3.Connection, batch: Sequence[Append]) -> None:
    for start in range(0, len(batch), ROWS):
        _insert_rows(connection, batch[start : start + ROWS])
    for append in batch:
        if append.idempotency is not None:
            key, entry = append.idempotency, append.entry
            connection.execute(
                INSERT_KEY,
                (entry.sequence, entry.account, key.key, key.digest, key.response, entry.arrived),
            )
        for change in append.contents:
            list_contents.change_list(
                connection, append.entry.account, append.entry.sequence, change
            )


def _refusal(entry: Entry, error: Exception) -> Exception:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_CONSTRAINT_UNIQUE":
        return Taken(f"the id `{entry.id}` is already used")
    return JournalError(f"entry {entry.sequence} can't be stored: {error}")


class SqliteJournal(Journal):
    """A `Journal` in a data folder whose lock is held, as `open_journal` holds it."""

    def __init__(self, folder: Path, waiting_limit: int = WAITING_LIMIT) -> None:
        self._folder = folder
        self._reading = schema.connect_for_reading(folder)
        self._in_flight = InFlight()
        self._unused_ids = UnusedIds()
        self._writer = Writer(
            SqliteStore(folder), self._in_flight, self.last_sequence(), waiting_limit
        )

    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        done = self._writer.append(entry, idempotency, contents)
        self._unused_ids.add_used(entry.account, entry.id)
        return done

    def has_room(self) -> bool:
        return self._writer.has_room()

    def trusted_clock(self) -> int:
        return reads.trusted_clock(self._reading)

    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        is_unused = self._unused_ids.is_unused(account, record_id)
        if is_unused is None:
            is_unused = await self._look_up_prefix(account, record_id)
        if is_unused:
            return False
        # An unsettled entry may still be lost, so wait: the answer is about entries on disk.
        while futures := self._in_flight.futures(account, record_id, kind):
            await asyncio.wait(futures)
        return reads.exists(self._reading, account, kind, record_id)

    def last_sequence(self) -> int:
        return reads.last_sequence(self._reading)

    def discard_abandoned(self) -> None:
        with closing(schema.connect(self._folder)) as connection:
            staging.discard_abandoned(connection, self._folder)

    async def query(self, read: Callable[[SqlConnection], T]) -> T:
        # In the event loop, since it takes microseconds.
        return read(self._reading)

    async def size(self) -> int:
        return (self._folder / schema.DATABASE_FILE).stat().st_size

    async def prove(self, since: float) -> None:
        """The folder's lock is the proof."""

    def _require_own(self) -> None:
        """The folder's lock is the proof."""

    async def wait_until_lost(self) -> None:
        # Never: this process holds the folder's lock as long as it lives.
        await asyncio.get_running_loop().create_future()

    def identity(self) -> str:
        return reads.identity(self._reading)

    async def close(self) -> None:
        await self._writer.close()
        self._reading.close()

    async def _leave_nothing_behind(self) -> None:
        def work() -> None:
            with self._reader() as connection:
                retention.empty_log(connection)

        await asyncio.to_thread(work)

    def _reader(self) -> closing[sqlite3.Connection]:
        return closing(schema.connect_for_reading(self._folder))
