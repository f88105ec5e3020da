"""The journal in one SQLite file: a thread that writes, and reads that don't hold the loop up.

Point reads follow an index on a connection of the loop's own and take microseconds. Pages, purging
and rewriting read in other threads, a bounded batch at a time; no read keeps a snapshot beyond its
batch, so the write-ahead log can always be emptied.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal import (
    checksums,
    list_contents,
    reads,
    requests,
    retention,
    schema,
    staging,
)
from tollkeeper.engine.journal.contract import EVERY_KIND, RECORDS, CommandRequest, Journal
from tollkeeper.engine.journal.damage import named_damage
from tollkeeper.engine.journal.entries import (
    Entry,
    Idempotency,
    Kind,
    ListChange,
    ListEntry,
    Page,
    Stretch,
)
from tollkeeper.engine.journal.lock import LOCK_PATIENCE_S, lock
from tollkeeper.engine.journal.writer import Append, InFlight, Writer

# A few hundredths of a second's work; with the largest bodies, 256 MiB.
WAITING_LIMIT = 1024

T = TypeVar("T")


@asynccontextmanager
async def open_journal(
    folder: Path,
    purpose: str,
    *,
    patience_s: float = LOCK_PATIENCE_S,
    waiting_limit: int = WAITING_LIMIT,
) -> AsyncIterator[SqliteJournal]:
    """Locks the data folder for `purpose` and opens its journal, until the end of the block.

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


class SqliteJournal(Journal):
    """A `Journal` in a data folder whose lock is held, as `open_journal` holds it."""

    def __init__(self, folder: Path, waiting_limit: int = WAITING_LIMIT) -> None:
        self._folder = folder
        self._reading = schema.connect_for_reading(folder)
        self._in_flight = InFlight()
        self._unused_ids = UnusedIds(self._is_unused)
        self._writer = Writer(
            partial(schema.connect, folder), self._in_flight.remove, waiting_limit
        )
        self._last_appended = self.last_sequence()

    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        if entry.sequence <= self._last_appended:
            raise ValueError(
                f"sequence number {entry.sequence} is not beyond {self._last_appended}"
            )
        append: Append = self._writer.append(entry, idempotency, contents)
        self._last_appended = entry.sequence
        self._in_flight.add(append)
        self._unused_ids.remove(entry.account, entry.id)
        return append.done

    def has_room(self) -> bool:
        return self._writer.has_room()

    def queue_length(self) -> int:
        return self._writer.waiting

    def last_appended(self) -> int:
        return self._last_appended

    def unsettled(self) -> list[asyncio.Future[None]]:
        return self._in_flight.unsettled()

    def write_failures(self) -> int:
        return self._writer.failures

    def write_failure(self) -> str | None:
        return self._writer.failure

    async def set_clock(self, trusted: int) -> None:
        await self.run(
            lambda connection: connection.execute("UPDATE identity SET clock = ?", (trusted,))
        )

    def trusted_clock(self) -> int:
        return reads.trusted_clock(self._reading)

    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        if self._unused_ids.has(account, record_id):
            return False
        return bool(self._in_flight.of(account, record_id, kind)) or reads.exists(
            self._reading, account, kind, record_id
        )

    async def states(self, account: int, record_id: str) -> list[Entry]:
        written = reads.states(self._reading, account, record_id)
        last = written[-1].sequence if written else 0
        being_written = self._in_flight.of(account, record_id, Kind.PAYMENT, Kind.UPDATE)
        return written + [entry for entry in being_written if entry.sequence > last]

    async def of_record(self, account: int, kind: Kind, record_id: str) -> list[Entry]:
        written = reads.of_record(self._reading, account, kind, record_id)
        last = written[-1].sequence if written else 0
        being_written = self._in_flight.of(account, record_id, kind)
        return written + [entry for entry in being_written if entry.sequence > last]

    async def entry(self, sequence: int) -> Entry | None:
        return reads.entry_at(self._reading, sequence)

    async def find_idempotency(self, account: int, key: str, now: int) -> Idempotency | None:
        while first_use := self._in_flight.with_key(account, key):
            await first_use
        return reads.find_idempotency(self._reading, account, key, now)

    async def latest(
        self,
        account: int,
        kind: Kind,
        *,
        since: int = 0,
        wanted: Callable[[Entry], bool] = lambda _entry: True,
        cursor: int | None = None,
        limit: int = 100,
    ) -> Page:
        return await self._in_thread(
            lambda connection: reads.latest(connection, account, kind, since, wanted, cursor, limit)
        )

    async def changes(self, after: int = 0) -> list[Entry]:
        return reads.changes(self._reading, after)

    def last_sequence(self) -> int:
        return reads.last_sequence(self._reading)

    def replay(
        self,
        account: int | None = None,
        *,
        since: int = 0,
        after: int = 0,
        up_to: int | None = None,
        kinds: Collection[Kind] = EVERY_KIND,
    ) -> Iterator[list[Entry]]:
        with self._reader() as connection:
            yield from reads.replay_entries(connection, account, since, after, up_to, kinds)

    def replay_latest(
        self,
        account: int,
        *,
        since: int = 0,
        after: int = 0,
        up_to: int,
        kinds: Collection[Kind] = EVERY_KIND,
    ) -> Iterator[Stretch]:
        with self._reader() as connection:
            yield from reads.replay_latest(connection, account, since, after, up_to, kinds)

    def entries_between(
        self, account: int, times: tuple[int, int], *, up_to: int, most: int
    ) -> list[Entry] | None:
        with self._reader() as connection:
            return reads.entries_between(connection, account, times, up_to, most)

    def entries_back(
        self, account: int, times: tuple[int, int], *, up_to: int, before: int, most: int
    ) -> list[Entry]:
        with self._reader() as connection:
            return reads.entries_back(connection, account, times, up_to, before, most)

    def count(self, account: int | None = None, *, since: int = 0, after: int = 0) -> int:
        with self._reader() as connection:
            return reads.count_entries(connection, account, since, after)

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        with self._reader() as connection:
            yield from list_contents.current_entries(connection, account, list_name, beyond)

    def list_entries_at(
        self, account: int, list_name: str, sequence: int, values: Sequence[str]
    ) -> list[ListEntry]:
        with self._reader() as connection:
            return list_contents.find_at(connection, account, list_name, sequence, values)

    def count_staged(self, account: int, list_name: str, content: int) -> int | None:
        with self._reader() as connection:
            return staging.count_staged(connection, account, list_name, content)

    def staged_entries(self, content: int) -> Iterator[ListEntry]:
        with self._reader() as connection:
            yield from list_contents.content_entries(connection, content, 0)

    def discard_abandoned(self) -> None:
        with closing(schema.connect(self._folder)) as connection:
            staging.discard_abandoned(connection, self._folder)

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """A query of another kind on the loop's connection; it should take microseconds."""
        return query(self._reading)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does a short write other than an append between two commits; at most 50 ms of work."""
        return await self._writer.run(work)

    async def purge(self, account: int, before: int) -> int:
        return await retention.purge_records(self._in_thread, self.run, account, before)

    async def rewrite(
        self,
        account: int,
        change: Callable[[Entry], Entry],
        kinds: Collection[Kind] = RECORDS,
    ) -> int:
        return await retention.rewrite(self._in_thread, self.run, account, change, kinds)

    async def forget_values(self, account: int, values: Collection[str]) -> int:
        removed = await self.run(
            lambda connection: list_contents.forget_values(connection, account, values)
        )
        await self._in_thread(retention.empty_log)
        return removed

    async def forget_account(self, account: int) -> int:
        removed = await retention.forget_account(self._in_thread, self.run, account)
        await asyncio.to_thread(self.discard_abandoned)
        await self._in_thread(retention.empty_log)
        return removed

    async def forget_keys(self, sequences: Sequence[int]) -> int:
        return await retention.forget_keys(self._in_thread, self.run, sequences)

    async def expire(self, now: int) -> None:
        await retention.expire(self.run, now)

    async def requests(self) -> list[CommandRequest]:
        return requests.open_requests(self._reading)

    async def take_request(self, request: int) -> None:
        await self.run(lambda connection: requests.take_request(connection, request))

    async def note_progress(self, request: int, share: float) -> None:
        await self.run(lambda connection: requests.note_progress(connection, request, share))

    async def note_answer(self, request: int, result: str) -> None:
        await self.run(lambda connection: requests.answer_request(connection, request, result))

    async def first_and_last(self, account: int, record_id: str) -> tuple[Entry, Entry] | None:
        being_written = self._in_flight.of(account, record_id, Kind.PAYMENT, Kind.UPDATE)
        written = reads.first_and_last(self._reading, account, record_id)
        found = [*written, *being_written]
        return (found[0], found[-1]) if found else None

    async def flush(self) -> None:
        await self.run(lambda _connection: None)

    def identity(self) -> str:
        return reads.identity(self._reading)

    async def seal(self, at_least: int = checksums.BLOCK) -> None:
        while await self.run(partial(checksums.seal_step, at_least=at_least)):
            pass

    async def close(self) -> None:
        await self._writer.close()
        self._reading.close()

    def _is_unused(self, account: int, beginning: str) -> bool:
        if self._in_flight.begins(account, beginning):
            return False
        beyond = beginning + chr(sys.maxunicode)
        return self._reading.execute(ID_BEGINS, (account, beginning, beyond)).fetchone() is None

    def _reader(self) -> closing[sqlite3.Connection]:
        return closing(schema.connect_for_reading(self._folder))

    async def _in_thread(self, read: Callable[[sqlite3.Connection], T]) -> T:
        def work() -> T:
            with self._reader() as connection:
                return read(connection)

        return await asyncio.to_thread(work)


ID_BEGINS = (
    "SELECT 1 FROM journal INDEXED BY by_id WHERE account = ? AND id >= ? AND id < ? LIMIT 1"
)
BEGINNING = 10
"""How many characters make a beginning: 4 seconds of a UUID of version 7."""
MAX_HELD = 50_000
"""How many ids and beginnings are held in memory."""


class UnusedIds:
    """Ids that are certainly unused, so that most appends need no query of the database.

    Once a query has found no id with a beginning, all ids with it are those that were appended
    since. Ids that the service makes begin with the time, so a query every few seconds is enough.

    `is_unused(account, beginning)` queries whether no id of the account begins so.

    It must see entries on disk and entries being written.
    """

    def __init__(self, is_unused: Callable[[int, str], bool]) -> None:
        self._is_unused = is_unused
        self._held = 0
        # By account and beginning: all its ids, None where the database has some.
        self._ids: dict[tuple[int, str], set[str] | None] = {}

    def has(self, account: int, record_id: str) -> bool:
        """Whether it is certain that the account has no entry with this id, of any kind."""
        beginning = (account, record_id[:BEGINNING])
        try:
            ids = self._ids[beginning]
        except KeyError:
            ids = set() if self._is_unused(*beginning) else None
            self._ids[beginning] = ids
            self._held += 1
            self._drop_oldest()
        return ids is not None and record_id not in ids

    def remove(self, account: int, record_id: str) -> None:
        """To be called before an entry with this id is appended."""
        ids = self._ids.get((account, record_id[:BEGINNING]))
        if ids is not None:
            ids.add(record_id)
            self._held += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drops the oldest beginnings while too much is held."""
        while self._held > MAX_HELD:
            ids = self._ids.pop(next(iter(self._ids)))
            self._held -= 1 + len(ids or ())
