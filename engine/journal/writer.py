"""The thread that writes the journal: all appends that wait at a moment are one commit.

When a commit fails, so does every append queued before its callers knew of the failure: it may
have been decided from a lost entry. Each append carries the generation in which it was queued. A
failure ends the generation; the next one begins, and appends are accepted again, once the callers
of the lost appends have undone what their entries stood for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from tollkeeper.engine.journal.appends import Append, InFlight, UncancellableFuture
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Overloaded, Unavailable
from tollkeeper.engine.journal.entries import Entry, Idempotency, ListChange

# A few hundredths of a second's work; with the largest bodies, 256 MiB.
WAITING_LIMIT = 1024
# Bounds how long the first of a batch waits for the last.
BATCH = 512
_UNWRITTEN = "the journal can't be written: {}"
_LOST_BEFORE = "an entry before it was not written"

T = TypeVar("T")


class WriterStep(NamedTuple):
    """A short transaction other than an append."""

    work: Callable[[SqlConnection], Any]
    done: asyncio.Future[Any]


class EntryStore(Protocol):
    """The database that the writer's thread, and no other, writes to."""

    def write(self, batch: Sequence[Append]) -> dict[int, Exception]:
        """Write the batch in one transaction, except entries that can't be stored: returns the error
        of each by its sequence number.

        When it raises, nothing of the batch was written.
        """

    def perform(self, work: Callable[[SqlConnection], T]) -> tuple[T, bool]:
        """Run `work` in a transaction; returns its result, and whether an entry could be written now.

        Raises `Unavailable` when the database can't be written, and what `work` raises.
        """

    def disconnect(self) -> None:
        """Close the connection and roll back its transaction; the next call connects again."""


class Writer:
    """Takes work from one event loop and does it in a thread of its own, in order.

    An append is in `in_flight` from its call until it is settled: it is removed before those who
    await it are resumed. `last_appended` is the last sequence number appended, written or not.
    `failures` counts the commits and steps that failed; `failure` says why the last commit failed,
    None when it succeeded.
    """

    def __init__(
        self, store: EntryStore, in_flight: InFlight, last_appended: int, waiting_limit: int
    ) -> None:
        self._store = store
        self._in_flight = in_flight
        self._waiting_limit = waiting_limit
        self.last_appended = last_appended
        self.failures = 0
        self.failure: str | None = None
        self._closed = False
        self._generation = 0
        # Set by the thread: appends of older generations are not written.
        self._oldest_valid = 0
        self._is_undoing = False
        self._gathered: list[Append] = []
        self._queue: SimpleQueue[list[Append] | WriterStep | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many appends are not yet settled."""
        return len(self._in_flight)

    def has_room(self) -> bool:
        """Whether fewer than `waiting_limit` appends wait to be written."""
        return len(self._in_flight) < self._waiting_limit

    def append(
        self, entry: Entry, idempotency: Idempotency | None, changes: tuple[ListChange, ...]
    ) -> UncancellableFuture:
        """Queue an entry; the future is done once it is settled.

        Raises ValueError for a sequence number not above the last, `Unavailable` when closed and
        while callers undo lost entries, `Overloaded` when too many appends wait.
        """
        if entry.sequence <= self.last_appended:
            raise ValueError(f"sequence number {entry.sequence} is not beyond {self.last_appended}")
        if self._closed:
            raise Unavailable("the journal is closed")
        if self._is_undoing:
            raise Unavailable(_UNWRITTEN.format(_LOST_BEFORE))
        if not self.has_room():
            raise Overloaded(f"{self.waiting} entries already wait to be written")
        loop = asyncio.get_running_loop()
        done = UncancellableFuture(loop=loop)
        append = Append(entry, idempotency, changes, self._generation, done)
        self.last_appended = entry.sequence
        self._in_flight.add(append)
        if not self._gathered:
            # Appends of one iteration of the loop wake the thread once and share a commit.
            loop.call_soon(self._hand_over)
        self._gathered.append(append)
        if len(self._gathered) == BATCH:
            self._hand_over()
        return done

    def run(self, work: Callable[[SqlConnection], T]) -> asyncio.Future[T]:
        """Run `work`, of at most 50 ms, in a transaction of its own."""
        if self._closed:
            raise Unavailable("the journal is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hand_over()
        self._queue.put(WriterStep(work, done))
        return done

    async def close(self) -> None:
        """End the thread once all queued work is done."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        # Before it ended, the thread scheduled callbacks of this loop: let them run.
        await asyncio.sleep(0)

    def _hand_over(self) -> None:
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    def _work(self) -> None:
        items: list[list[Append] | WriterStep | None] = []
        while None not in items:
            items = self._next_items()
            for kind, group in groupby(items, type):
                if kind is list:
                    appends = (item for item in group if isinstance(item, list))
                    self._write([*chain.from_iterable(appends)])
                else:
                    for item in group:
                        if isinstance(item, WriterStep):
                            self._run_step(item)
        self._store.disconnect()

    def _next_items(self) -> list[list[Append] | WriterStep | None]:
        """What is queued, up to about `BATCH` appends and steps; waits for the first."""
        items = [self._queue.get()]
        try:
            while items[-1] is not None and sum(map(_size, items)) < BATCH:
                items.append(self._queue.get_nowait())
        except Empty:
            pass
        return items

    def _write(self, batch: list[Append]) -> None:
        # Older appends fail with the commit that failed before them, see `_give_up`.
        batch = [append for append in batch if append.generation >= self._oldest_valid]
        if not batch:
            return
        try:
            refused = self._store.write(batch)
        except Exception as error:
            # Of any type: every caller that awaits an append must learn that it failed.
            self.failures += 1
            self.failure = str(error)
            self._store.disconnect()
            self._oldest_valid = batch[-1].generation + 1
            _post(batch[0].done, self._give_up, batch, str(error), self._oldest_valid)
        else:
            self.failure = None
            _post(batch[0].done, self._settle, batch, refused.get)

    def _run_step(self, step: WriterStep) -> None:
        try:
            result, takes_entries = self._store.perform(step.work)
            if takes_entries:
                self.failure = None
        except Unavailable as error:
            self.failures += 1
            self.failure = str(error.__cause__ or error)
            self._store.disconnect()
            _post(step.done, _fail, step.done, error)
        except Exception as error:
            # The work's own error: it says nothing about the database.
            self._store.disconnect()
            _post(step.done, _fail, step.done, error)
        else:
            _post(step.done, _succeed, step.done, result)

    def _settle(self, batch: Sequence[Append], error_at: Callable[[int], Exception | None]) -> None:
        for append in batch:
            self._in_flight.remove(append)
            error = error_at(append.entry.sequence)
            if error is None:
                _succeed(append.done, None)
            else:
                _fail(append.done, error)

    def _give_up(self, batch: Sequence[Append], reason: str, generation: int) -> None:
        """Fail a lost batch and all appends queued behind it, then begin the generation."""
        self._is_undoing = True
        self._settle(batch, _unavailable_error(reason))
        self._settle(self._in_flight.appends(), _unavailable_error(_LOST_BEFORE))
        # One iteration of the loop later the tasks just resumed have undone their entries.
        asyncio.get_running_loop().call_soon(self._begin, generation)

    def _begin(self, generation: int) -> None:
        self._generation, self._is_undoing = generation, False


def _size(item: list[Append] | WriterStep | None) -> int:
    return len(item) if isinstance(item, list) else 1


def _unavailable_error(reason: str) -> Callable[[int], Exception]:
    return lambda _sequence: Unavailable(_UNWRITTEN.format(reason))


def _post(done: asyncio.Future[Any], callback: Callable[..., None], *arguments: object) -> None:
    """Call back in the event loop of the future."""
    done.get_loop().call_soon_threadsafe(callback, *arguments)


def _succeed(done: asyncio.Future[Any], result: object) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
