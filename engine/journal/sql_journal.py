"""What journals in an SQL database have in common: the same queries, in threads of their own."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from tollkeeper.engine.journal import (
    checksums,
    list_contents,
    reads,
    requests,
    retention,
    staging,
)
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import EVERY_KIND, RECORDS, Journal
from tollkeeper.engine.journal.entries import Entry, Kind, ListEntry, Page, Stretch
from tollkeeper.engine.journal.writer import InFlight, Writer

T = TypeVar("T")


class SqlJournal(Journal):
    """A `Journal` but for what lies on a payment's way, which each database does its own way."""

    _writer: Writer
    _in_flight: InFlight
    _last_appended: int

    @abstractmethod
    def _reader(self) -> AbstractContextManager[SqlConnection]:
        """A connection of its own for reading."""

    @abstractmethod
    async def _leave_nothing_behind(self) -> None:
        """Removes what was overwritten from where the database itself still has it."""

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

    def record_entries(self, account: int, kind: Kind, record_id: str, up_to: int) -> list[Entry]:
        with self._reader() as connection:
            found = reads.of_record(connection, account, kind, record_id)
        return [entry for entry in found if entry.sequence <= up_to]

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

    async def run(self, work: Callable[[SqlConnection], T]) -> T:
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
        rewritten = await retention.rewrite(self._in_thread, self.run, account, change, kinds)
        await self._leave_nothing_behind()
        return rewritten

    async def forget_values(self, account: int, values: Collection[str]) -> int:
        removed = await self.run(
            lambda connection: list_contents.forget_values(connection, account, values)
        )
        await self._leave_nothing_behind()
        return removed

    async def forget_account(self, account: int) -> int:
        removed = await retention.forget_account(self._in_thread, self.run, account)
        await asyncio.to_thread(self.discard_abandoned)
        await self._leave_nothing_behind()
        return removed

    async def forget_keys(self, sequences: Sequence[int]) -> int:
        removed = await retention.forget_keys(self.run, sequences)
        await self._leave_nothing_behind()
        return removed

    async def expire(self, now: int) -> None:
        await retention.expire(self.run, now)

    async def take_request(self, request: int) -> None:
        await self.run(lambda connection: requests.take_request(connection, request))

    async def note_progress(self, request: int, share: float) -> None:
        await self.run(lambda connection: requests.note_progress(connection, request, share))

    async def note_answer(self, request: int, result: str) -> None:
        await self.run(lambda connection: requests.answer_request(connection, request, result))

    async def flush(self) -> None:
        await self.run(lambda _connection: None)

    async def seal(self, at_least: int = checksums.BLOCK) -> None:
        while await self.run(partial(checksums.seal_step, at_least=at_least)):
            pass

    async def _in_thread(self, read: Callable[[SqlConnection], T]) -> T:
        def work() -> T:
            with self._reader() as connection:
                return read(connection)

        return await asyncio.to_thread(work)
