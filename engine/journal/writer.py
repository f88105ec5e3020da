"""The one thread that writes: all appends that wait at a moment go to disk in one commit.

When a commit fails, all appends that were queued before their callers knew of it fail with it, at
once. Each append carries a generation; the next one begins once those callers have undone their
work, and nothing is taken until then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Overloaded, Unavailable
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange

# A few hundredths of a second's work; with the largest bodies, 256 MiB.
WAITING_LIMIT = 1024
# Bounds how long the first of a batch waits for the last.
BATCH = 512
_UNWRITTEN = "the journal can't be written: {}"
_BEHIND = "an entry before it was not written"

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

    work: Callable[[SqlConnection], Any]
    done: asyncio.Future[Any]


class EntryStore(Protocol):
    """Where a writer's thread puts what it is given; one thread alone calls it."""

    def write(self, batch: Sequence[Append]) -> dict[int, Exception]:
        """Writes all of the batch or nothing, but for single entries that can't be: those it
        returns, by their sequence numbers.

        Whatever it raises, nothing of the batch was written.
        """

    def perform(self, work: Callable[[SqlConnection], T]) -> tuple[T, bool]:
        """Does `work` within a transaction: its result, and whether an entry could be written, too.

        Raises `Unavailable` when the database can't be written, and what `work` raises.
        """

    def disconnect(self) -> None:
        """Ends what is open; the next call starts afresh."""


class Writer:
    """Takes work from one event loop and does it in a thread of its own, in order.

    `settled` is called in the loop with each append once it is on disk or lost, before those who
    wait for it are woken. `failures` counts the commits and steps that came to nothing; `failure`
    says why the last commit failed, None when it didn't.
    """

    def __init__(
        self,
        store: EntryStore,
        settled: Callable[[Append], None],
        waiting_limit: int,
    ) -> None:
        self._store = store
        self._settled = settled
        self._waiting_limit = waiting_limit
        self.failures = 0
        self.failure: str | None = None
        self._closed = False
        self._generation = 0
        self._oldest_valid = 0
        self._is_undoing = False
        # By its sequence number, each append that is neither on disk nor lost, oldest first.
        self._unsettled: dict[int, Append] = {}
        self._gathered: list[Append] = []
        self._queue: SimpleQueue[list[Append] | WriterStep | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many appends are neither on disk nor lost."""
        return len(self._unsettled)

    def has_room(self) -> bool:
        """Whether fewer than `waiting_limit` appends wait to be written."""
        return self.waiting < self._waiting_limit

    def append(
        self, entry: Entry, idempotency: Idempotency | None, changes: tuple[ListChange, ...]
    ) -> Append:
        """Queues an entry. Raises `Unavailable` when closed, and while others undo what was lost;
        `Overloaded` when too many wait."""
        if self._closed:
            raise Unavailable("the journal is closed")
        if self._is_undoing:
            raise Unavailable(_UNWRITTEN.format(_BEHIND))
        if not self.has_room():
            raise Overloaded(f"{self.waiting} entries already wait to be written")
        done = UncancellableFuture(loop=asyncio.get_running_loop())
        append = Append(entry, idempotency, changes, self._generation, done)
        self._unsettled[entry.sequence] = append
        if not self._gathered:
            # All that one turn of the loop appends wakes the thread once, and is one commit.
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._gathered.append(append)
        if len(self._gathered) == BATCH:
            self._hand_over()
        return append

    def run(self, work: Callable[[SqlConnection], T]) -> asyncio.Future[T]:
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
        self._store.disconnect()

    def _next_items(self) -> list[list[Append] | WriterStep | None]:
        items = [self._queue.get()]
        try:
            while items[-1] is not None and sum(map(_size, items)) < BATCH:
                items.append(self._queue.get_nowait())
        except Empty:
            pass
        return items

    def _write(self, batch: list[Append]) -> None:
        # Of what is older its callers have heard, or will at once.
        batch = [append for append in batch if append.generation >= self._oldest_valid]
        if not batch:
            return
        try:
            refused = self._store.write(batch)
        except Exception as error:
            # Whatever it is, those who wait must hear of it.
            self.failures += 1
            self.failure = str(error)
            self._store.disconnect()
            self._oldest_valid = batch[-1].generation + 1
            _post(batch[0].done, self._give_up, batch, str(error), self._oldest_valid)
        else:
            self.failure = None
            _post(batch[0].done, self._deliver, batch, refused.get)

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
            # What the work itself raises belongs to who asked for it.
            self._store.disconnect()
            _post(step.done, _fail, step.done, error)
        else:
            _post(step.done, _succeed, step.done, result)

    def _deliver(self, batch: Sequence[Append], failure: Callable[[int], Exception | None]) -> None:
        for append in batch:
            del self._unsettled[append.entry.sequence]
            self._settled(append)
            error = failure(append.entry.sequence)
            if error is None:
                _succeed(append.done, None)
            else:
                _fail(append.done, error)

    def _give_up(self, batch: Sequence[Append], reason: str, generation: int) -> None:
        self._is_undoing = True
        self._deliver(batch, _unavailable_error(reason))
        behind = list(self._unsettled.values())
        self._deliver(behind, _unavailable_error(_BEHIND))
        # One turn of the loop later: by then those just woken have undone what they stood for.
        asyncio.get_running_loop().call_soon(self._begin, generation)

    def _begin(self, generation: int) -> None:
        self._generation, self._is_undoing = generation, False


def _size(item: list[Append] | WriterStep | None) -> int:
    return len(item) if isinstance(item, list) else 1


def _unavailable_error(reason: str) -> Callable[[int], Exception]:
    return lambda _place: Unavailable(_UNWRITTEN.format(reason))


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


@dataclass(slots=True, eq=False)
class Watched:
    """`is_touched` once an append of what is watched has been settled. Two who watch the same
    differ."""

    is_touched: bool = False


class InFlight:
    """Used from the event loop only, so a read and the append that follows it see the same."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], tuple[Entry, ...]] = {}
        self._keys: dict[tuple[int, str], list[asyncio.Future[None]]] = {}
        self._unsettled: dict[int, asyncio.Future[None]] = {}
        # By account and id, or account and key: who wants to hear of what is settled.
        self._watching: dict[tuple[int, str], list[Watched]] = {}

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
        if self._watching:
            self._tell(append)

    def unsettled(self) -> list[asyncio.Future[None]]:
        """What becomes of each append that is neither on disk nor lost."""
        return list(self._unsettled.values())

    def of(self, account: int, record_id: str, *kinds: Kind) -> list[Entry]:
        """The entries with this id and one of the kinds, oldest first."""
        return [e for e in self._entries.get((account, record_id), ()) if e.kind in kinds]

    def settling(self, account: int, record_id: str, kind: Kind) -> list[asyncio.Future[None]]:
        """What becomes of the entries with this id and kind."""
        return [self._unsettled[entry.sequence] for entry in self.of(account, record_id, kind)]

    @contextmanager
    def watch(self, account: int, name: str) -> Iterator[Watched]:
        """Notes, while the block runs, whether an append with this id or key is settled."""
        watched = Watched()
        self._watching.setdefault((account, name), []).append(watched)
        try:
            yield watched
        finally:
            self._watching[account, name].remove(watched)
            if not self._watching[account, name]:
                del self._watching[account, name]

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

    def _tell(self, append: Append) -> None:
        names = {append.entry.id}
        if append.idempotency is not None:
            names.add(append.idempotency.key)
        for name in names:
            for watched in self._watching.get((append.entry.account, name), ()):
                watched.is_touched = True


BEGINNING = 10
"""How many characters make a beginning: 4 seconds of a UUID of version 7."""
MAX_HELD = 50_000
"""How many ids and beginnings are held in memory."""


class UnusedIds:
    """Ids that are certainly unused, so that most appends need no query of the database.

    Once a query has found no id with a beginning, all ids with it are those that were appended
    since. Ids that the service makes begin with the time, so a query every few seconds is enough.
    """

    def __init__(self) -> None:
        self._held = 0
        # By account and beginning: all its ids, None where the database has some.
        self._ids: dict[tuple[int, str], set[str] | None] = {}
        # The same of beginnings that the database is being asked for: what was appended meanwhile.
        self._asked: dict[tuple[int, str], set[str]] = {}

    def knows(self, account: int, record_id: str) -> bool | None:
        """Whether it is certain that the account has no entry with this id, of any kind.

        None when the database has to be asked for the id's beginning.
        """
        try:
            ids = self._ids[account, record_id[:BEGINNING]]
        except KeyError:
            return None
        return ids is not None and record_id not in ids

    def ask(self, account: int, beginning: str) -> None:
        """To be called before the database is asked for ids with this beginning."""
        self._asked.setdefault((account, beginning), set())

    def learn(self, account: int, beginning: str, *, are_unused: bool) -> None:
        """What the database answered, of entries on disk, and those that were being written when it
        was asked.
        """
        appended = self._asked.pop((account, beginning), None)
        if appended is not None:
            self._ids[account, beginning] = appended if are_unused else None
            self._held += 1 + (len(appended) if are_unused else 0)
            self._drop_oldest()

    def remove(self, account: int, record_id: str) -> None:
        """To be called before an entry with this id is appended."""
        beginning = (account, record_id[:BEGINNING])
        if self._asked and beginning in self._asked:
            self._asked[beginning].add(record_id)
        ids = self._ids.get(beginning)
        if ids is not None:
            ids.add(record_id)
            self._held += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drops the oldest beginnings while too much is held."""
        while self._held > MAX_HELD:
            ids = self._ids.pop(next(iter(self._ids)))
            self._held -= 1 + len(ids or ())
