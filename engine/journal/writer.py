"""The one thread that writes: all appends that wait at a moment go to disk in one commit.

When a commit fails, all appends that were queued before their callers knew of it fail too. Each
append carries a generation; the next one begins once those callers have undone their work.
"""

# ruff: noqa: S608 - only placeholders are put into the queries

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, groupby
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from tollkeeper.engine.journal import list_contents
from tollkeeper.engine.journal.contract import JournalError, Overloaded, Taken, Unavailable
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange

COLUMNS = "place, account, kind, id, arrived, time, body, outcome, checksum"
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
# One statement for many rows: the thread gives up the interpreter once for all, not once for each.
ROWS = 64
INSERT_KEY = "INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?, ?)"
# Bounds how long the first of a batch waits for the last.
BATCH = 512

T = TypeVar("T")


class UncancellableFuture(asyncio.Future[None]):
    """Done once an entry is on disk or lost; a task that is cancelled while it waits ends only
    then.

    So the task can undo what the entry stood for.
    """

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's signature
        return False


class Append(NamedTuple):
    """An entry with all that goes with it, and the one who waits for it."""

    entry: Entry
    idempotency: Idempotency | None
    contents: tuple[ListChange, ...]
    generation: int
    done: UncancellableFuture


class WriterStep(NamedTuple):
    """A short transaction other than an append."""

    work: Callable[[sqlite3.Connection], Any]
    done: asyncio.Future[Any]


class Writer:
    """Takes work from one event loop and does it in a thread of its own, in order.

    `settled` is called in the loop with each append once it is on disk or lost, before those who
    wait for it are woken. `waiting` counts the appends that are neither, `failures` the commits
    and steps that came to nothing; `failure` says why the last commit failed, None when it didn't.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        settled: Callable[[Append], None],
        waiting_limit: int,
    ) -> None:
        self._connect = connect
        self._settled = settled
        self._waiting_limit = waiting_limit
        self.waiting = 0
        self.failures = 0
        self.failure: str | None = None
        self._closed = False
        self._generation = 0
        self._oldest_valid = 0
        self._gathered: list[Append] = []
        self._queue: SimpleQueue[list[Append] | WriterStep | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        """Whether fewer than `waiting_limit` appends wait to be written."""
        return self.waiting < self._waiting_limit

    def append(
        self, entry: Entry, idempotency: Idempotency | None, changes: tuple[ListChange, ...]
    ) -> Append:
        """Queues an entry. Raises `Unavailable` when closed, `Overloaded` when too many wait."""
        if self._closed:
            raise Unavailable("the journal is closed")
        if not self.has_room():
            raise Overloaded(f"{self.waiting} entries already wait to be written")
        done = UncancellableFuture(loop=asyncio.get_running_loop())
        append = Append(entry, idempotency, changes, self._generation, done)
        self.waiting += 1
        if not self._gathered:
            # All that one turn of the loop appends wakes the thread once, and is one commit.
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._gathered.append(append)
        if len(self._gathered) == BATCH:
            self._hand_over()
        return append

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Does `work` within a transaction of its own, which should take at most 50 ms."""
        if self._closed:
            raise Unavailable("the journal is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hand_over()
        self._queue.put(WriterStep(work, done))
        return done

    async def close(self) -> None:
        """Ends the thread once all that was queued is done."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        # The thread has posted its last results to this loop before it ended.
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
        self._disconnect()

    def _next_items(self) -> list[list[Append] | WriterStep | None]:
        items = [self._queue.get()]
        try:
            while items[-1] is not None and sum(map(_size, items)) < BATCH:
                items.append(self._queue.get_nowait())
        except Empty:
            pass
        return items

    def _write(self, batch: list[Append]) -> None:
        stale = [append for append in batch if append.generation < self._oldest_valid]
        if stale:
            _post(stale[0].done, self._deliver, stale, _lost("an entry before it was not written"))
            batch = batch[len(stale) :]
        if not batch:
            return
        try:
            refused = self._commit(batch)
        except Exception as error:
            # Whatever it is, those who wait must hear of it.
            self.failures += 1
            self.failure = str(error)
            self._disconnect()
            self._oldest_valid = batch[-1].generation + 1
            _post(batch[0].done, self._give_up, batch, str(error), self._oldest_valid)
        else:
            self.failure = None
            _post(batch[0].done, self._deliver, batch, refused.get)

    def _commit(self, batch: Sequence[Append]) -> dict[int, Exception]:
        """Writes all of the batch or nothing, but for single entries that can't be: those it
        returns.
        """
        connection = self._connected()
        try:
            if len(batch) <= ROWS and not any(map(_is_more_than_a_row, batch)):
                # A statement by itself is a transaction: the thread waits for the interpreter once.
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

    def _run_step(self, step: WriterStep) -> None:
        try:
            connection = self._connected()
            before = connection.total_changes
            connection.execute("BEGIN IMMEDIATE")
            result = step.work(connection)
            connection.execute("COMMIT")
            if connection.total_changes > before:
                self.failure = None
        except (sqlite3.Error, OSError) as error:
            self.failures += 1
            self.failure = str(error)
            self._disconnect()
            _post(
                step.done, _fail, step.done, Unavailable(f"the journal can't be written: {error}")
            )
        except Exception as error:
            # What the work itself raises belongs to who asked for it.
            self._disconnect()
            _post(step.done, _fail, step.done, error)
        else:
            _post(step.done, _succeed, step.done, result)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _disconnect(self) -> None:
        # An open transaction is rolled back; the next batch starts afresh.
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _deliver(self, batch: Sequence[Append], failure: Callable[[int], Exception | None]) -> None:
        self.waiting -= len(batch)
        for append in batch:
            self._settled(append)
            error = failure(append.entry.sequence)
            if error is None:
                _succeed(append.done, None)
            else:
                _fail(append.done, error)

    def _give_up(self, batch: Sequence[Append], reason: str, generation: int) -> None:
        self._deliver(batch, _lost(reason))
        # One turn of the loop later: by then those just woken have undone what they stood for.
        asyncio.get_running_loop().call_soon(self._set_generation, generation)

    def _set_generation(self, generation: int) -> None:
        self._generation = generation


def _size(item: list[Append] | WriterStep | None) -> int:
    return len(item) if isinstance(item, list) else 1


def _is_more_than_a_row(append: Append) -> bool:
    return append.idempotency is not None or bool(append.contents)


@cache
def _insert_of(rows: int) -> str:
    return f"INSERT INTO journal ({COLUMNS}) VALUES {', '.join([ROW] * rows)}"


def _insert_rows(connection: sqlite3.Connection, batch: Sequence[Append]) -> None:
    rows = [(*append.entry, checksum(append.entry)) for append in batch]
    connection.execute(_insert_of(len(rows)), [*chain.from_iterable(rows)])


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


def _lost(reason: str) -> Callable[[int], Exception]:
    return lambda _place: Unavailable(f"the journal can't be written: {reason}")


def _post(done: asyncio.Future[Any], callback: Callable[..., None], *arguments: object) -> None:
    done.get_loop().call_soon_threadsafe(callback, *arguments)


def _succeed(done: asyncio.Future[Any], result: object) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


def checksum(entry: Entry) -> int:
    """Of all that the entry holds. Raises ValueError for an id that can't be encoded."""
    sequence, account, kind, id_, arrived, time, body, outcome = entry
    start = crc32(f"{sequence} {account} {kind:d} {arrived} {time} {id_}".encode())
    return crc32(outcome or b"", crc32(body, start))


class InFlight:
    """Used from the event loop only, so a read and the append that follows it see the same."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], tuple[Entry, ...]] = {}
        self._keys: dict[tuple[int, str], list[asyncio.Future[None]]] = {}
        self._unsettled: dict[int, asyncio.Future[None]] = {}

    def add(self, append: Append) -> None:
        """Notes an append, until it is removed again."""
        entry = append.entry
        of = (entry.account, entry.id)
        before = self._entries.get(of)
        self._entries[of] = (entry,) if before is None else (*before, entry)
        self._unsettled[entry.sequence] = append.done
        if append.idempotency is not None:
            self._keys[entry.account, append.idempotency.key] = []

    def remove(self, append: Append) -> None:
        """Forgets an append that is on disk or lost."""
        entry = append.entry
        of = (entry.account, entry.id)
        entries = self._entries[of]
        del self._unsettled[entry.sequence]
        if len(entries) == 1:
            del self._entries[of]
        else:
            self._entries[of] = tuple(each for each in entries if each is not entry)
        if append.idempotency is not None:
            for waiting in self._keys.pop((entry.account, append.idempotency.key), ()):
                if not waiting.done():
                    waiting.set_result(None)

    def unsettled(self) -> list[asyncio.Future[None]]:
        """What becomes of each append that is neither on disk nor lost."""
        return list(self._unsettled.values())

    def of(self, account: int, record_id: str, *kinds: Kind) -> list[Entry]:
        """The entries with this id and one of the kinds, oldest first."""
        return [e for e in self._entries.get((account, record_id), ()) if e.kind in kinds]

    def begins(self, account: int, beginning: str) -> bool:
        """Whether an id of the account begins so."""
        return any(of == account and id_.startswith(beginning) for of, id_ in self._entries)

    def with_key(self, account: int, key: str) -> asyncio.Future[None] | None:
        """What to wait for until the key's first use is on disk or lost, None when there is none.

        It isn't the append's own future: who sent the first request may have stopped waiting.
        """
        waiting = self._keys.get((account, key))
        if waiting is None:
            return None
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(settled)
        return settled
