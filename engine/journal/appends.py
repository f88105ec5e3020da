"""What is known of appends without a query: those not yet settled, and ids that none has used.

An append is settled once it is on disk or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec import Struct

from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange

PREFIX_LENGTH = 10
"""The characters of an id that make its prefix: 4 seconds of a UUID of version 7 share one."""
MAX_IDS = 50_000
"""The most ids and prefixes that are held in memory."""


class UncancellableFuture(asyncio.Future[None]):
    """The future of an append: done once the append is settled, whoever awaits it.

    A task that is cancelled while it awaits this future is resumed only when the future is done, so
    that the task knows whether it must undo what the entry stood for.
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


@dataclass(slots=True, eq=False)
class Watch:
    """`is_touched` is true once an append with the watched id or key was settled."""

    is_touched: bool = False


class InFlight:
    """The unsettled appends, by record and by idempotency key.

    Used from the event loop only, so that a read and the append that follows it see the same ones.
    """

    def __init__(self) -> None:
        # By sequence number, oldest first.
        self._appends: dict[int, Append] = {}
        # By account and id.
        self._by_record: dict[tuple[int, str], tuple[Append, ...]] = {}
        # By account and key: futures of those who wait until the key's first use is settled.
        self._key_waiters: dict[tuple[int, str], list[asyncio.Future[None]]] = {}
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
            self._key_waiters[entry.account, append.idempotency.key] = []

    def remove(self, append: Append) -> None:
        """Remove a settled append, and wake those who wait for its idempotency key."""
        entry = append.entry
        record = (entry.account, entry.id)
        appends = self._by_record[record]
        del self._appends[entry.sequence]
        if len(appends) == 1:
            del self._by_record[record]
        else:
            self._by_record[record] = tuple(each for each in appends if each is not append)
        if append.idempotency is not None:
            for waiter in self._key_waiters.pop((entry.account, append.idempotency.key), ()):
                if not waiter.done():
                    waiter.set_result(None)
        if self._watches:
            self._touch(append)

    def appends(self) -> list[Append]:
        """All unsettled appends, oldest first."""
        return list(self._appends.values())

    def entries(self, account: int, record_id: str, *kinds: Kind) -> list[Entry]:
        """The unsettled entries with this id and one of the kinds, oldest first."""
        appends = self._by_record.get((account, record_id), ())
        return [each.entry for each in appends if each.entry.kind in kinds]

    def futures(self, account: int, record_id: str, kind: Kind) -> list[asyncio.Future[None]]:
        """The futures of the unsettled entries with this id and kind."""
        appends = self._by_record.get((account, record_id), ())
        return [each.done for each in appends if each.entry.kind == kind]

    @contextmanager
    def watch(self, account: int, name: str) -> Iterator[Watch]:
        """Watch, while the block runs, whether an append with this id or key is settled."""
        watch = Watch()
        self._watches.setdefault((account, name), []).append(watch)
        try:
            yield watch
        finally:
            self._watches[account, name].remove(watch)
            if not self._watches[account, name]:
                del self._watches[account, name]

    def has_prefix(self, account: int, prefix: str) -> bool:
        """Whether an unsettled entry of the account has an id that starts with `prefix`."""
        return any(of == account and id_.startswith(prefix) for of, id_ in self._by_record)

    def first_use(self, account: int, key: str) -> asyncio.Future[None] | None:
        """A future that is done when the key's unsettled first use is settled; None without one.

        It is not the append's own future, which also fails: to the caller, a lost first use is none.
        """
        waiters = self._key_waiters.get((account, key))
        if waiters is None:
            return None
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.append(settled)
        return settled

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
        """To be called before the database is asked whether it has ids with this prefix."""
        self._appended.setdefault((account, prefix), set())

    def end_look_up(self, account: int, prefix: str, *, are_unused: bool) -> None:
        """Take the answer: whether no entry with the prefix was on disk or being written when the
        database was asked.
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
