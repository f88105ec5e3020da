"""What can be told of appends without a query: which are not settled, which ids are unused, and the
newest arrival.

An append is settled once it is on disk or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange

PREFIX_LENGTH = 10
"""The characters of an id that make its prefix: 4 seconds of a UUID of version 7 share one."""
MAX_IDS = 50_000
"""The most ids and prefixes that are held in memory."""
SET_BACK: Final = HOUR
"""A clock that is further (µs) behind the newest arrival was set back, and is followed."""


class UncancellableFuture(asyncio.Future[None]):
    """The future of an append: done once the append is settled.

    A task that is cancelled while it awaits this future is resumed only when the future is done, so
    that the task knows whether it must undo the effects of the entry.
    """

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's signature
        return False


class Append(Struct, frozen=True):
    """An entry to write, with what is written in the same transaction.

    `generation` is the writer's when the entry was queued, see `Writer`.
    """

    entry: Entry
    idempotency: Idempotency | None
    contents: tuple[ListChange, ...]
    generation: int
    done: UncancellableFuture


class Watch:
    """Watches, within a `with`, whether an append with an id or key is settled: then `is_touched` is true.

    Not a generator's context, which would take longer than a query of SQLite.
    """

    __slots__ = ("_name", "_watches", "is_touched")

    def __init__(self, watches: dict[tuple[int, str], list[Watch]], name: tuple[int, str]) -> None:
        self._watches = watches
        self._name = name
        self.is_touched = False

    def __enter__(self) -> Watch:
        self._watches.setdefault(self._name, []).append(self)
        return self

    def __exit__(self, *_raised: object) -> None:
        watches = self._watches[self._name]
        watches.remove(self)
        if not watches:
            del self._watches[self._name]


class InFlight:
    """The unsettled appends, by record and by idempotency key.

    Used from the event loop only, so that a read and the append that follows it see the same ones.
    """

    def __init__(self) -> None:
        # By sequence number, oldest first.
        self._appends: dict[int, Append] = {}
        # By account and id.
        self._by_record: dict[tuple[int, str], tuple[Append, ...]] = {}
        # By account and idempotency key: the append that uses it.
        self._by_key: dict[tuple[int, str], Append] = {}
        # By account and id, or account and key.
        self._watches: dict[tuple[int, str], list[Watch]] = {}

    def __len__(self) -> int:
        return len(self._appends)

    def add(self, append: Append) -> None:
        """Add a queued append."""
        entry = append.entry
        record = (entry.account, entry.id)
        before = self._by_record.get(record)
        self._by_record[record] = (append,) if before is None else (*before, append)
        self._appends[entry.sequence] = append
        if append.idempotency is not None:
            self._by_key[entry.account, append.idempotency.key] = append

    def remove(self, append: Append) -> None:
        """Remove a settled append."""
        entry = append.entry
        record = (entry.account, entry.id)
        appends = self._by_record[record]
        del self._appends[entry.sequence]
        if len(appends) == 1:
            del self._by_record[record]
        else:
            self._by_record[record] = tuple(each for each in appends if each is not append)
        if append.idempotency is not None:
            self._by_key.pop((entry.account, append.idempotency.key), None)
        if self._watches:
            self._touch(append)

    def appends(self) -> list[Append]:
        """All unsettled appends, oldest first."""
        return list(self._appends.values())

    def entries(self, account: int, record_id: str, *kinds: Kind) -> list[Entry]:
        """The unsettled entries with this id and one of the kinds, oldest first."""
        appends = self._by_record.get((account, record_id), ())
        return [each.entry for each in appends if each.entry.kind in kinds]

    def futures(self, account: int, record_id: str, *kinds: Kind) -> list[asyncio.Future[None]]:
        """The futures of the unsettled entries with this id and one of the kinds."""
        appends = self._by_record.get((account, record_id), ())
        return [each.done for each in appends if each.entry.kind in kinds]

    def watch(self, account: int, name: str) -> Watch:
        """A watch for appends with this id or key."""
        return Watch(self._watches, (account, name))

    def has_prefix(self, account: int, prefix: str) -> bool:
        """Whether an unsettled entry of the account has an id that starts with `prefix`."""
        return any(number == account and id_.startswith(prefix) for number, id_ in self._by_record)

    def first_use(self, account: int, key: str) -> asyncio.Future[None] | None:
        """The future of the append that uses the key and is unsettled; None without one."""
        append = self._by_key.get((account, key))
        return None if append is None else append.done

    def _touch(self, append: Append) -> None:
        names = {append.entry.id}
        if append.idempotency is not None:
            names.add(append.idempotency.key)
        for name in names:
            for watch in self._watches.get((append.entry.account, name), ()):
                watch.is_touched = True


class UnusedIds:
    """Ids that are certainly unused, so that most appends need no query of the database. Used from
    the event loop only.

    Ids are looked up by prefix. Once a query has found no id with a prefix, the used ids with that
    prefix are those that were appended since. Ids that the service makes begin with the time, so
    that one query every few seconds is enough for them.
    """

    def __init__(self) -> None:
        # How many prefixes and ids `_used` has.
        self._size = 0
        # By account and prefix: the ids appended since the database was found to have none with the
        # prefix; None where it has some. The prefix that was looked up first comes first.
        self._used: dict[tuple[int, str], set[str] | None] = {}
        # By account and prefix: the ids appended since a look-up began that has not ended.
        self._appended: dict[tuple[int, str], set[str]] = {}

    def is_unused(self, account: int, record_id: str) -> bool | None:
        """Whether it is certain that the account has no entry with this id, of any kind.

        None when the id's prefix has to be looked up first.
        """
        try:
            used = self._used[account, record_id[:PREFIX_LENGTH]]
        except KeyError:
            return None
        return used is not None and record_id not in used

    def begin_look_up(self, account: int, prefix: str) -> None:
        """To be called before the database is queried for ids with this prefix."""
        self._appended.setdefault((account, prefix), set())

    def end_look_up(self, account: int, prefix: str, *, are_unused: bool) -> None:
        """Take the query's answer: `are_unused` if no entry with the prefix was on disk or being
        written at its begin.
        """
        appended = self._appended.pop((account, prefix), None)
        if appended is not None:
            self._used[account, prefix] = appended if are_unused else None
            self._size += 1 + (len(appended) if are_unused else 0)
            self._drop_oldest()

    def add_used(self, account: int, record_id: str) -> None:
        """To be called when an entry with this id is appended."""
        prefix = (account, record_id[:PREFIX_LENGTH])
        if self._appended and prefix in self._appended:
            self._appended[prefix].add(record_id)
        used = self._used.get(prefix)
        if used is not None:
            used.add(record_id)
            self._size += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while self._size > MAX_IDS:
            used = self._used.pop(next(iter(self._used)))
            self._size -= 1 + len(used or ())


class Arrivals:
    """Arrivals in the order of sequence numbers, so that a moment can be found in the journal by
    halves.

    Between its arrival and its sequence number a request waits: for another with its key, for its
    payment, for the database. What came later may have its number by then. `newest` is the arrival
    (µs) of the last sequence number that was taken.
    """

    __slots__ = ("_clock", "newest")

    def __init__(self, clock: Callable[[], int], newest: int) -> None:
        self._clock = clock
        self.newest = newest

    def put_in_order(self, arrived: int) -> int:
        """The arrival of what takes the next sequence number, before anything else does: that of the
        number before where it is later than `arrived`."""
        if arrived >= self.newest or self._clock() < self.newest - SET_BACK:
            self.newest = arrived
        return self.newest
