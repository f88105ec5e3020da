"""The journal's interface, whichever SQL database keeps it."""

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
from tollkeeper.engine.journal.appends import PREFIX_LENGTH, InFlight, UnusedIds
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
from tollkeeper.engine.journal.writer import Writer

T = TypeVar("T")


class Journal(ABC):
    """An append-only sequence of entries; the order of appends is the order of sequence numbers.

    Reads see what is on disk and, where stated, what is being written. `replay`, `replay_latest`
    and `count` block: call them in another thread than the event loop's.

    Each database implements what a new payment needs. The queries are shared: short ones go through
    `query`, long ones run in threads of their own.
    """

    shard = Shard()
    """Which of the database's journals it is."""
    look_s = requests.LOOK_S
    """How often its owner looks for requests of commands."""
    _writer: Writer
    _in_flight: InFlight
    _unused_ids: UnusedIds

    @abstractmethod
    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        """Write the entry together with its idempotency key and list contents, or nothing; the
        future is done once they are on disk.

        The call itself queues the entry, not the await; the writer gets it at the event loop's next
        iteration. Sequence numbers must grow; gaps are allowed. The call raises `Overloaded`,
        `Unavailable` (closed) or ValueError (a sequence number not above the last).

        The future raises `Taken` or `Unavailable`. Then every append that was queued after it, up
        to the end of the loop's next iteration, fails too: it may have been decided from the lost
        entry. Await the future directly, and undo the entry's effects before the next await: later
        appends rely on that. It can't be cancelled: a task that is cancelled while it waits
        is resumed when the future is done, so that it can undo.
        """

    @abstractmethod
    def has_room(self) -> bool:
        """Whether an append would be queued now, and not raise `Overloaded`."""

    @abstractmethod
    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        """Whether the account has an entry of this kind and id. Waits for one that is being written,
        as it may be lost.

        Raises `Unavailable`; `Fenced` once this process has given the journal up or lost it, so that
        windows count nothing more: they are written to a file meanwhile.
        """

    @abstractmethod
    def trusted_clock(self) -> int:
        """The last time (µs) at which the clock was trusted, 0 before the first."""

    @abstractmethod
    def last_sequence(self) -> int:
        """The highest sequence number on disk, 0 in an empty journal."""

    @abstractmethod
    def discard_abandoned(self) -> None:
        """Remove the staged contents of imports that were killed.

        While any import runs nothing is removed: the contents may be its own. Blocks as `replay`.
        """

    @abstractmethod
    async def size(self) -> int:
        """The journal's size on disk in bytes."""

    @abstractmethod
    async def wait_until_lost(self) -> None:
        """Return once another process has taken the journal over: this one can't write any more."""

    @abstractmethod
    async def prove(self, since: float) -> None:
        """Return once it is certain that this process owned the journal at some time after `since`
        (by `time.monotonic`), so that what was read from memory then was current. Raises `Fenced`,
        `Unavailable`."""

    @abstractmethod
    def identity(self) -> str:
        """An identity that no other journal has; a restored copy has another than the original."""

    @abstractmethod
    async def close(self) -> None:
        """Write all accepted entries, then close."""

    @abstractmethod
    async def query(self, read: Callable[[SqlConnection], T]) -> T:
        """The result of a short query, which uses an index."""

    @abstractmethod
    def _reader(self) -> AbstractContextManager[SqlConnection]:
        """A new connection for reading."""

    @abstractmethod
    def _require_own(self) -> None:
        """Raise `Fenced` where the journal is this process's no more."""

    @abstractmethod
    async def _leave_nothing_behind(self) -> None:
        """Remove overwritten data from the places where the database still has it."""

    async def states(self, account: int, record_id: str) -> list[Entry]:
        """A payment's creation and updates, oldest first, also those being written."""
        return await self._with_unsettled(
            account,
            record_id,
            (Kind.PAYMENT, Kind.UPDATE),
            lambda connection: reads.states(connection, account, record_id),
        )

    async def of_record(self, account: int, kind: Kind, record_id: str) -> list[Entry]:
        """The account's entries of this kind and id, oldest first, also those being written."""
        return await self._with_unsettled(
            account,
            record_id,
            (kind,),
            lambda connection: reads.of_record(connection, account, kind, record_id),
        )

    async def first_and_last(self, account: int, record_id: str) -> tuple[Entry, Entry] | None:
        """A payment's creation and its last update (or the creation again); None when there is no
        such payment. Waits for what is being written, as it may be lost. Raises as `exists`."""
        kinds = (Kind.PAYMENT, Kind.UPDATE)
        while True:
            found = await self._with_unsettled(
                account,
                record_id,
                kinds,
                lambda connection: reads.first_and_last(connection, account, record_id),
            )
            unsettled = self._in_flight.futures(account, record_id, *kinds)
            if not unsettled:
                self._require_own()
                return (found[0], found[-1]) if found else None
            await asyncio.wait(unsettled)

    async def count_updates(self, account: int, record_id: str, most: int) -> int:
        """How many updates of a payment are on disk, counted up to `most`."""
        return await self.query(
            lambda connection: reads.count_updates(connection, account, record_id, most)
        )

    async def entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence number."""
        return await self.query(lambda connection: reads.entry_at(connection, sequence))

    async def find_idempotency(self, account: int, key: str, now: int) -> Idempotency | None:
        """The request that used a key in the 24 hours before `now`; if it is being written, waits
        for that.
        """
        while True:
            while first_use := self._in_flight.first_use(account, key):
                await asyncio.wait([first_use])
            with self._in_flight.watch(account, key) as watch:
                found = await self.query(
                    lambda connection: reads.find_idempotency(connection, account, key, now)
                )
            if not watch.is_touched and self._in_flight.first_use(account, key) is None:
                return found

    async def requests(self) -> list[CommandRequest]:
        """The requests of commands to the service, oldest first."""
        return await self.query(requests.open_requests)

    def queue_length(self) -> int:
        """The number of appends that wait to be written."""
        return self._writer.waiting

    def last_appended(self) -> int:
        """The sequence number of the last append, written or not."""
        return self._writer.last_appended

    def unsettled(self) -> list[asyncio.Future[None]]:
        """The futures of the appends that are neither on disk nor lost yet."""
        return [append.done for append in self._in_flight.appends()]

    def write_failures(self) -> int:
        """How many writes have failed since the journal was opened."""
        return self._writer.failures

    def write_failure(self) -> str | None:
        """Why the last commit failed; None when it succeeded."""
        return self._writer.failure

    async def set_clock(self, trusted: int) -> None:
        """Store the last time (µs) at which the clock was trusted.

        It returns once that is on disk, so it also probes whether writing works. Raises
        `Unavailable`.
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
        """The account's entries of a kind for which `wanted` is true, arrived at `since` (µs) or
        later, newest first.

        `wanted` is called in another thread. The work for one page is bounded, see `Page`.
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
        """Batches of entries by sequence number: numbers in (after, up_to], event times at or after
        `since`.

        `account` None means all; `up_to` None means the last sequence number at the time of the
        call. With `containing`, only entries with one of these texts in body or outcome: lower
        case, as JSON writes them, matched regardless of the case of ASCII letters.
        """
        with self._reader() as connection:
            yield from reads.replay_entries(
                connection, account, since, after, up_to, kinds, containing
            )

    def changes(self, *, after: int) -> Iterator[Entry]:
        """Every account's changes after a sequence number, oldest first. Blocks as `replay`."""
        with self._reader() as connection:
            yield from reads.changes(connection, after)

    def replay_back(self, account: int, kind: Kind, *, before: int | None) -> Iterator[Entry]:
        """The account's entries of a kind that arrived before a time (µs), None for all, newest first.

        Blocks as `replay`.
        """
        with self._reader() as connection:
            cursor = None if before is None else reads.sequence_at(connection, before)
            yield from reads.back(connection, account, kind, cursor)

    def payments_at(self, account: int, sequences: Iterable[int]) -> Iterator[list[Entry]]:
        """The creations at these sequence numbers, and the updates of their payments.

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
        """Payments and events as of `up_to`, stretch by stretch.

        Parameters as in `replay`; `kinds` may contain payments, which include their updates, and
        events.
        """
        with self._reader() as connection:
            yield from reads.replay_latest(connection, account, since, after, up_to, kinds)

    def entries_between(
        self, account: int, times: tuple[int, int], *, up_to: int, most: int
    ) -> list[Entry] | None:
        """The payments, as of the sequence number `up_to`, and events with event times in `times`
        (µs, both included), oldest sequence number first.

        None when more than `most` entries would have to be read. Blocks as `replay`.
        """
        with self._reader() as connection:
            return reads.entries_between(connection, account, times, up_to, most)

    def entries_back(
        self, account: int, times: tuple[int, int], *, up_to: int, before: int, most: int
    ) -> list[Entry]:
        """The same with sequence numbers below `before`, newest first, at most `most`."""
        with self._reader() as connection:
            return reads.entries_back(connection, account, times, up_to, before, most)

    def count(self, account: int | None = None, *, since: int = 0, after: int = 0) -> int:
        """An upper estimate of the entries that a `replay` of every kind reads."""
        with self._reader() as connection:
            return reads.count_entries(connection, account, since, after)

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        """A list's entries, expired ones included, in batches ordered by value, after `beyond`."""
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
        """A list's entries with these values, a few hundred at most, as of a sequence number.

        As far back as the account's history is kept. Blocks as `replay`.
        """
        with self._reader() as connection:
            return list_contents.find_at(connection, account, list_name, sequence, values)

    def count_staged(self, account: int, list_name: str, content: int) -> int | None:
        """How many entries the staged content `content` of a list has; None when there is none.

        A staged content is filled beside the list's own, which a `Replacement` then replaces by it.
        """
        with self._reader() as connection:
            return staging.count_staged(connection, account, list_name, content)

    def staged_entries(self, content: int) -> Iterator[ListEntry]:
        """The entries of a staged content, ordered by value."""
        with self._reader() as connection:
            yield from list_contents.content_entries(connection, content, 0)

    async def run(self, work: Callable[[SqlConnection], T]) -> T:
        """Run `work`, of at most 50 ms, in a transaction of its own between two commits of appends."""
        return await self._writer.run(work)

    async def purge(
        self, account: int, before: int, take_turns: retention.TakeTurns = retention.at_once
    ) -> int:
        """Remove payments, with updates and labels, and events with event times before `before`;
        returns how many. Records are removed within `take_turns`, some hundred at a time."""
        return await retention.purge_records(self._in_thread, self.run, account, before, take_turns)

    async def holds_older(self, account: int, before: int) -> bool:
        """Whether `purge` would remove anything."""
        return await retention.holds_older(self._in_thread, account, before)

    async def purge_lists(self, account: int, before: int) -> None:
        """Remove entries that left their lists before `before` (µs): no kept payment was decided
        with them."""
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
        """Rewrite bodies and outcomes of the account's entries of these kinds; returns how many
        changed.

        Rewritten are the entries at the sequence numbers `at`, and those after `after` that match
        `containing` (as in `replay`), including what is written while it runs.

        `change` is called in another thread, must return an entry with the same sequence number,
        and must not change an entry twice: an interrupted run is repeated.
        """
        rewritten = await retention.rewrite(
            self._in_thread, self.run, account, change, kinds, containing, at, after
        )
        await self._leave_nothing_behind()
        return rewritten

    async def forget_values(self, account: int, values: Collection[str]) -> int:
        """Remove values from the present and past entries of the account's lists; returns how many."""
        removed = await self.run(
            lambda connection: list_contents.forget_values(connection, account, values)
        )
        await self._leave_nothing_behind()
        return removed

    async def forget_account(self, account: int) -> int:
        """Remove all of an account's entries but its first and last change; returns how many.

        If this is interrupted, the journal can still be opened, and another call removes the rest.
        """
        removed = await retention.forget_account(self._in_thread, self.run, account)
        await asyncio.to_thread(self.discard_abandoned)
        await self._leave_nothing_behind()
        return removed

    async def forget_keys(self, sequences: Sequence[int]) -> int:
        """Remove the idempotency keys, with their responses, of the entries at these sequence
        numbers.
        """
        removed = await retention.forget_keys(self.run, sequences)
        await self._leave_nothing_behind()
        return removed

    async def expire(self, now: int) -> None:
        """Remove idempotency keys, commands' requests and amendments older than 24 hours."""
        await retention.expire(self.run, now)

    async def take_request(self, request: int) -> bool:
        """Mark a request as begun and delete its contents; whether its command still waits."""
        return await self.run(lambda connection: requests.take_request(connection, request))

    async def answer_abandoned(self, result: str) -> None:
        """Answer, with JSON text, the requests that a former owner began and will never finish."""
        await self.run(lambda connection: requests.answer_abandoned(connection, result))

    async def note_progress(self, request: int, share: float) -> None:
        """Report to a request's command the share that is done, from 0 to 1."""
        await self.run(lambda connection: requests.note_progress(connection, request, share))

    async def note_answer(self, request: int, result: str) -> None:
        """Answer a request's command with JSON text."""
        await self.run(lambda connection: requests.answer_request(connection, request, result))

    async def flush(self) -> None:
        """Return once every append queued before the call is on disk or refused. Raises `Unavailable`
        if the journal is closed or lost."""
        await self.run(lambda _connection: None)

    async def wait_for_appends(self) -> None:
        """Return once every append queued before the call is on disk or refused, without a transaction
        of its own, which is an empty commit in a database."""
        if waiting := self.unsettled():
            await asyncio.wait(waiting)

    async def seal(self, at_least: int = checksums.BLOCK) -> None:
        """Seal unsealed entries (`checksums.py`), block by block, while `at_least` are left."""
        while await self.run(partial(checksums.seal_step, at_least=at_least)):
            pass

    async def _in_thread(self, read: Callable[[SqlConnection], T]) -> T:
        def work() -> T:
            with self._reader() as connection:
                return read(connection)

        return await asyncio.to_thread(work)

    async def _with_unsettled(
        self,
        account: int,
        record_id: str,
        kinds: tuple[Kind, ...],
        read: Callable[[SqlConnection], list[Entry]],
    ) -> list[Entry]:
        """A record's entries on disk and the unsettled ones, as of the moment of return.

        A query in another thread may miss what is committed while it runs; it is then repeated.
        """
        while True:
            with self._in_flight.watch(account, record_id) as watch:
                written = await self.query(read)
            if not watch.is_touched:
                last = written[-1].sequence if written else 0
                being_written = self._in_flight.entries(account, record_id, *kinds)
                return written + [entry for entry in being_written if entry.sequence > last]

    async def _look_up_prefix(self, account: int, record_id: str) -> bool:
        """Whether the id is certainly unused, by a query for all ids with its prefix."""
        ids, prefix = self._unused_ids, record_id[:PREFIX_LENGTH]
        ids.begin_look_up(account, prefix)
        is_found = self._in_flight.has_prefix(account, prefix) or await self.query(
            lambda connection: reads.has_prefix(connection, account, prefix)
        )
        ids.end_look_up(account, prefix, are_unused=not is_found)
        return bool(ids.is_unused(account, record_id))
