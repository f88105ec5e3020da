"""What the rest of the engine can ask of a journal, whichever SQL database keeps it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from tollkeeper.engine.journal.contract import EVERY_KIND, RECORDS, CommandRequest, Shard
from tollkeeper.engine.journal.entries import (
    Entry,
    Idempotency,
    Kind,
    ListChange,
    ListEntry,
    Page,
    Stretch,
)
from tollkeeper.engine.journal.writer import InFlight, Writer

T = TypeVar("T")


class Journal(ABC):
    """An append-only sequence of entries; the order of appends is the order of sequence numbers.

    Reads see what is on disk; where said, also what is being written. `replay`, `replay_latest` and
    `count` block and are for other threads than the event loop's.

    What lies on a payment's way each database does its own way; the other queries are the same, in
    threads of their own.
    """

    shard = Shard()
    """Which of the database's journals it is."""
    _writer: Writer
    _in_flight: InFlight
    _last_appended: int

    @abstractmethod
    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        """Writes the entry with all that goes with it, or nothing; done once it is on disk.

        The entry is queued by the call itself, not by the await, and handed to be written when the
        event loop turns. Places must grow; gaps are allowed. The call raises `Overloaded`,
        `Unavailable` (closed) or ValueError (a sequence number not beyond the last). The future
        raises `Taken`, or `Unavailable`; then all that was queued behind it, or is before the event
        loop has turned once more, is refused too, since it may have been decided from what is now
        lost. Await it directly and undo what it stood for in the same step: later appends count on
        that. It can't be cancelled: a task that is cancelled while it waits is woken once the
        future is done, and undoes what it must.
        """

    @abstractmethod
    def has_room(self) -> bool:
        """Whether an append would be queued now, rather than `Overloaded`."""

    @abstractmethod
    def trusted_clock(self) -> int:
        """The last moment (µs) at which the clock was found plausible, 0 when there was none yet."""

    @abstractmethod
    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        """Whether the account has an entry of this kind and id, written or being written."""

    @abstractmethod
    async def states(self, account: int, record_id: str) -> list[Entry]:
        """A payment's creation and updates, oldest first, also those being written."""

    @abstractmethod
    async def of_record(self, account: int, kind: Kind, record_id: str) -> list[Entry]:
        """The account's entries of this kind and id, oldest first, also those being written."""

    @abstractmethod
    async def entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence number."""

    @abstractmethod
    async def find_idempotency(self, account: int, key: str, now: int) -> Idempotency | None:
        """What a key was used for in the 24 hours before `now`; waits for a first use being
        written.
        """

    @abstractmethod
    async def changes(self, after: int = 0) -> list[Entry]:
        """Every account's configuration changes beyond a sequence number, oldest first."""

    @abstractmethod
    def last_sequence(self) -> int:
        """The highest sequence number on disk, 0 in an empty journal."""

    @abstractmethod
    def discard_abandoned(self) -> None:
        """Removes what killed imports left staged.

        While an import runs nothing is removed: all that is staged may be its own. Blocks as
        `replay`.
        """

    @abstractmethod
    async def requests(self) -> list[CommandRequest]:
        """What commands have left for the service to do, oldest first."""

    @abstractmethod
    async def first_and_last(self, account: int, record_id: str) -> tuple[Entry, Entry] | None:
        """A payment's creation and its latest state, also when being written; None without it."""

    @abstractmethod
    async def size(self) -> int:
        """How many bytes of a disk it takes."""

    @abstractmethod
    async def lost(self) -> None:
        """Done once the journal is another process's: nothing can be written here any more."""

    @abstractmethod
    async def prove(self, since: float) -> None:
        """Done once it is certain that the journal was this process's at a moment past `since` (by
        `time.monotonic`): what memory said by then was so. Raises `Fenced`, `Unavailable`."""

    @abstractmethod
    def identity(self) -> str:
        """Tells this journal from every other; a restored one is another than the one backed up."""

    @abstractmethod
    async def close(self) -> None:
        """Writes all that was accepted, then closes."""

    @abstractmethod
    def _reader(self) -> AbstractContextManager[SqlConnection]:
        """A connection of its own for reading."""

    @abstractmethod
    async def _leave_nothing_behind(self) -> None:
        """Removes what was overwritten from where the database itself still has it."""

    def queue_length(self) -> int:
        """How many appends wait to be written."""
        return self._writer.waiting

    def last_appended(self) -> int:
        """The last sequence number of an entry that was handed over, written or not."""
        return self._last_appended

    def unsettled(self) -> list[asyncio.Future[None]]:
        """What becomes of each entry that was handed over and is neither written nor lost."""
        return self._in_flight.unsettled()

    def write_failures(self) -> int:
        """How many times nothing could be written since it was opened."""
        return self._writer.failures

    def write_failure(self) -> str | None:
        """Why nothing can be written at the moment; None when the last commit was kept."""
        return self._writer.failure

    async def set_clock(self, trusted: int) -> None:
        """Keeps the last moment (µs) at which the clock was found plausible.

        What it writes is on disk, so it also tells whether anything can be. Raises `Unavailable`.
        """
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
        """The account's entries of a kind that are `wanted`, newest first, none arrived before
        `since`.

        `wanted` is called in another thread. Work for one page is bounded, see `Page`.
        """
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
        containing: Collection[str] = (),
    ) -> Iterator[list[Entry]]:
        """Batches in order of sequence number: sequence numbers in (after, up_to], event time at or
        past `since`.

        `account` None means all; `up_to` None means the last sequence number at the time of the
        call. Of texts `containing` (small letters, as JSON writes them) one stands in the body or
        the outcome, where ASCII letters may be large.
        """
        with self._reader() as connection:
            yield from reads.replay_entries(
                connection, account, since, after, up_to, kinds, containing
            )

    def payments_at(self, account: int, sequences: Iterable[int]) -> Iterator[list[Entry]]:
        """Of each payment created at one of these sequence numbers the creation and the updates.

        Blocks as `replay`.
        """
        with self._reader() as connection:
            for sequence in sequences:
                for first in reads.entries_at(connection, account, [sequence], [Kind.PAYMENT]):
                    yield reads.states(connection, account, first.id)

    def replay_latest(
        self,
        account: int,
        *,
        since: int = 0,
        after: int = 0,
        up_to: int,
        kinds: Collection[Kind] = EVERY_KIND,
    ) -> Iterator[Stretch]:
        """What is known of payments and events as of `up_to`, read stretch by stretch.

        As `replay` takes its parameters; of `kinds` payments, which bring their updates, and
        events.
        """
        with self._reader() as connection:
            yield from reads.replay_latest(connection, account, since, after, up_to, kinds)

    def entries_between(
        self, account: int, times: tuple[int, int], *, up_to: int, most: int
    ) -> list[Entry] | None:
        """The payments, as known at the sequence number `up_to`, and events of event times from the
        first to the last of `times` (µs) and sequence numbers up to it, oldest sequence number
        first.

        None when more than `most` entries would have to be looked through. Blocks as `replay`.
        """
        with self._reader() as connection:
            return reads.entries_between(connection, account, times, up_to, most)

    def entries_back(
        self, account: int, times: tuple[int, int], *, up_to: int, before: int, most: int
    ) -> list[Entry]:
        """The same of sequence numbers smaller than `before`, the newest first, at most `most`."""
        with self._reader() as connection:
            return reads.entries_back(connection, account, times, up_to, before, most)

    def count(self, account: int | None = None, *, since: int = 0, after: int = 0) -> int:
        """About how many entries a `replay` of every kind passes; never fewer."""
        with self._reader() as connection:
            return reads.count_entries(connection, account, since, after)

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        """A list's entries, expired ones included, in batches ordered by value from `beyond` on."""
        with self._reader() as connection:
            yield from list_contents.current_entries(connection, account, list_name, beyond)

    def record_entries(self, account: int, kind: Kind, record_id: str, up_to: int) -> list[Entry]:
        """The account's entries of this kind and id up to a sequence number, oldest first.

        Blocks as `replay`.
        """
        with self._reader() as connection:
            found = reads.of_record(connection, account, kind, record_id)
        return [entry for entry in found if entry.sequence <= up_to]

    def list_entries_at(
        self, account: int, list_name: str, sequence: int, values: Sequence[str]
    ) -> list[ListEntry]:
        """A list's entries of these values, a few hundred at most, as a payment at `sequence` met
        them.

        As far back as the account keeps its history. Blocks as `replay`.
        """
        with self._reader() as connection:
            return list_contents.find_at(connection, account, list_name, sequence, values)

    def count_staged(self, account: int, list_name: str, content: int) -> int | None:
        """How many entries are staged for the list under `content`; None when nothing is.

        A staged content is filled beside the list's own, to be put in its place by a `Replacement`.
        """
        with self._reader() as connection:
            return staging.count_staged(connection, account, list_name, content)

    def staged_entries(self, content: int) -> Iterator[ListEntry]:
        """The entries of a staged content, ordered by value."""
        with self._reader() as connection:
            yield from list_contents.content_entries(connection, content, 0)

    async def run(self, work: Callable[[SqlConnection], T]) -> T:
        """Does `work` in a transaction of its own, between two commits of appends: at most 50 ms of
        it."""
        return await self._writer.run(work)

    async def purge(self, account: int, before: int) -> int:
        """Removes payments, their updates and labels, and events with event times before `before`;
        how many."""
        return await retention.purge_records(self._in_thread, self.run, account, before)

    async def holds_older(self, account: int, before: int) -> bool:
        """Whether `purge` would remove anything."""
        return await retention.holds_older(self._in_thread, account, before)

    async def purge_lists(self, account: int, before: int) -> None:
        """Removes what lists no longer had at `before` (µs): no payment that is kept has met it."""
        await retention.purge_lists(self._in_thread, self.run, account, before)

    async def rewrite(
        self,
        account: int,
        change: Callable[[Entry], Entry],
        kinds: Collection[Kind] = RECORDS,
        containing: Collection[str] = (),
        *,
        at: Sequence[int] = (),
        after: int = 0,
    ) -> int:
        """Replaces bodies and outcomes of the account's entries of these kinds; how many: of those at
        the sequence numbers `at`, and of those beyond `after`. Of these it takes
        `containing` as `replay` does, and looks through what was written meanwhile, too.

        `change` is called in another thread, must return an entry of the same sequence number, and
        must leave alone what it has changed before: a run that was cut off is run again.
        """
        rewritten = await retention.rewrite(
            self._in_thread, self.run, account, change, kinds, containing, at, after
        )
        await self._leave_nothing_behind()
        return rewritten

    async def forget_values(self, account: int, values: Collection[str]) -> int:
        """Removes values from all that the account's lists hold and ever held; how many entries."""
        removed = await self.run(
            lambda connection: list_contents.forget_values(connection, account, values)
        )
        await self._leave_nothing_behind()
        return removed

    async def forget_account(self, account: int) -> int:
        """Removes all of an account but its first and its last change; how many entries.

        What is left whenever this is cut off can be opened, and is removed by another call.
        """
        removed = await retention.forget_account(self._in_thread, self.run, account)
        await asyncio.to_thread(self.discard_abandoned)
        await self._leave_nothing_behind()
        return removed

    async def forget_keys(self, sequences: Sequence[int]) -> int:
        """Removes the idempotency keys, with their answers, of the entries at these sequence
        numbers.
        """
        removed = await retention.forget_keys(self.run, sequences)
        await self._leave_nothing_behind()
        return removed

    async def expire(self, now: int) -> None:
        """Removes idempotency keys, commands' requests and amendments older than 24 hours."""
        await retention.expire(self.run, now)

    async def take_request(self, request: int) -> None:
        """Takes a request that is about to be done: what it asks for is kept no longer."""
        await self.run(lambda connection: requests.take_request(connection, request))

    async def answer_abandoned(self, result: str) -> None:
        """Answers with JSON text what a former owner took and will never answer."""
        await self.run(lambda connection: requests.answer_abandoned(connection, result))

    async def note_progress(self, request: int, share: float) -> None:
        """Tells a request's command how much of it is done, from 0 to 1."""
        await self.run(lambda connection: requests.note_progress(connection, request, share))

    async def note_answer(self, request: int, result: str) -> None:
        """Answers a request's command with JSON text."""
        await self.run(lambda connection: requests.answer_request(connection, request, result))

    async def flush(self) -> None:
        """Done once all that was queued before the call is on disk or refused."""
        await self.run(lambda _connection: None)

    async def seal(self, at_least: int = checksums.BLOCK) -> None:
        """Seals (`checksums.py`) what is not yet, block by block, while `at_least` entries are left."""
        while await self.run(partial(checksums.seal_step, at_least=at_least)):
            pass

    async def _in_thread(self, read: Callable[[SqlConnection], T]) -> T:
        def work() -> T:
            with self._reader() as connection:
                return read(connection)

        return await asyncio.to_thread(work)
