"""The times at which groups were seen, of all accounts' series, written to a file in the background.

Each write brings a series to a sequence number, which is written with it: a start fills the series
from there on. A change is written only once the journal has its entry.

While a series is filled, its changes are collected as differences of counts, and it is not read. In
a live series a change sets the new count of a time, so that it may be written any number of times.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TypeAlias

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.velocity import first_seen_file
from tollkeeper.engine.velocity.contract import BEFORE_ALL, Group
from tollkeeper.engine.velocity.first_seen import SeenTimes
from tollkeeper.engine.velocity.first_seen_file import (
    CountChange,
    SeenTimesFile,
    StoredSeries,
    hash_group,
    open_seen_times_file,
)

CACHED = 65_536
"""The groups, of all accounts, whose first and last times are cached: this many to twice as many."""

Bounds: TypeAlias = tuple[int, int] | None
"""The first and the last time of a group, None for one that was never seen."""
Counts: TypeAlias = dict[Group, dict[int, int]]
"""How often a group was seen at each time (µs)."""
EVERY_S = 0.5
"""The seconds between two writes of changes."""
FILLED = 50_000
"""The collected changes of a series being filled that are held before they are written."""

SeriesName: TypeAlias = tuple[int, str]
"""An account, and the digest of one of its series."""
Written: TypeAlias = Callable[[], Awaitable[None]]
"""Waits until the journal has written or refused all entries appended before the call."""


class Unknown(Enum):
    """The result for a group whose bounds are not cached."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN


class RecentBounds:
    """A cache of the bounds of recently read groups, by series number and group.

    Whenever `CACHED` groups were read, all that were not among them are dropped.
    """

    def __init__(self) -> None:
        self._new: dict[tuple[int, Group], Bounds] = {}
        self._old: dict[tuple[int, Group], Bounds] = {}

    def find(self, name: tuple[int, Group]) -> Bounds | Unknown:
        found = self._new.get(name, UNKNOWN)
        if found is UNKNOWN:
            found = self._old.get(name, UNKNOWN)
            if found is not UNKNOWN:
                self.hold(name, found)
        return found

    def hold(self, name: tuple[int, Group], bounds: Bounds) -> None:
        self._new[name] = bounds
        if len(self._new) >= CACHED:
            self._new, self._old = {}, self._new

    def forget(self, name: tuple[int, Group]) -> None:
        self._new.pop(name, None)
        self._old.pop(name, None)


class StoredSeenTimes:
    """`SeenTimes` of the series `number` in the file, first being filled, then live.

    `written_up_to` is the sequence number up to which the file has it whole, None when it does not.
    """

    def __init__(
        self, file: SeenTimesFile, recent: RecentBounds, number: int, written_up_to: int | None
    ) -> None:
        self.number = number
        self.written_up_to = written_up_to
        self.is_given_up = False
        self._file = file
        self._recent = recent
        self._sequence = 0
        # Collected changes of counts, None once the series is live.
        self._collected: list[CountChange] | None = []
        # New counts: those to be written, and those that are being written.
        self._changed: Counts = {}
        self._writing: Counts = {}
        self._writing_up_to = BEFORE_ALL
        self._was_undone = False

    def reach(self, sequence: int) -> None:
        if sequence > self._sequence:
            self._sequence = sequence
        elif sequence <= self._writing_up_to:
            # A change that is being written is withdrawn.
            self._was_undone = True

    def add(self, group: Group, time: int) -> None:
        if self._collected is not None:
            self._collected.append((group, time, 1))
            return
        bounds = self._bounds(group)
        if bounds is None:
            self._set(group, time, 1, (time, time))
            return
        first, last = bounds
        inside = first <= time <= last
        count = self._count(group, time) if inside else 0
        self._set(group, time, count + 1, (min(first, time), max(last, time)))

    def remove(self, group: Group, time: int) -> None:
        if self._collected is not None:
            self._collected.append((group, time, -1))
            return
        bounds = self._bounds(group)
        if bounds is None or not bounds[0] <= time <= bounds[1]:
            return
        count = self._count(group, time)
        if count:
            self._set(group, time, count - 1, bounds)
            if count == 1 and time in bounds:
                self._recent.forget((self.number, group))

    def first(self, group: Group) -> int | None:
        bounds = self._bounds(group)
        return None if bounds is None else bounds[0]

    def latest(self, group: Group, at: int) -> int | None:
        bounds = self._bounds(group)
        if bounds is None or bounds[0] > at:
            return None
        return bounds[1] if bounds[1] <= at else self._last(group, at)

    def count_after(self, group: Group, after: int, most: int) -> int:
        bounds = self._bounds(group)
        if bounds is None or bounds[1] <= after:
            return 0
        unwritten = self._unwritten(group)
        found = sum(times for time, times in unwritten.items() if time > after)
        for time, times in self._file.counts_after(self.number, hash_group(group), after):
            if found >= most:
                break
            found += 0 if time in unwritten else times
        return min(found, most)

    def discard(self) -> None:
        self.is_given_up = True

    @property
    def filling(self) -> int:
        """How many collected changes are held."""
        return len(self._collected or ())

    def take_filled(self) -> list[CountChange]:
        """Take the collected changes, to add them to the file, which then no longer has it whole."""
        taken, self._collected = self._collected or [], []
        self.written_up_to = None
        return taken

    def go_live(self, sequence: int) -> None:
        """Make the series live: it has all changes up to this sequence number and can be read."""
        collected, self._collected = self._collected or [], None
        self._sequence = max(self._sequence, sequence)
        for group, time, change in collected:
            (self.add if change > 0 else self.remove)(group, time)

    def take_changes(self) -> bool:
        """Begin to write what has changed so far; whether there is anything to write."""
        if self._collected is not None or (
            not self._changed and self._sequence == self.written_up_to
        ):
            return False
        self._writing, self._changed = self._changed, {}
        self._writing_up_to = self._sequence
        self._was_undone = False
        return True

    @property
    def is_writable(self) -> bool:
        """Whether none of the changes being written has been withdrawn since they were taken."""
        return not self._was_undone

    def changes_to_write(self) -> tuple[list[CountChange], int]:
        """The changes that are being written, and the sequence number that they bring the series to."""
        changes = [
            (group, time, count)
            for group, counts in self._writing.items()
            for time, count in counts.items()
        ]
        return changes, self._writing_up_to

    def end_writing(self, *, was_written: bool, is_whole: bool) -> None:
        """End a write; changes that were not written will be again. `is_whole` says whether the file
        now has the series whole."""
        if was_written:
            self.written_up_to = self._writing_up_to if is_whole else None
        else:
            for group, counts in self._writing.items():
                self._changed[group] = counts | self._changed.get(group, {})
        self._writing, self._writing_up_to = {}, BEFORE_ALL

    def _set(self, group: Group, time: int, count: int, bounds: Bounds) -> None:
        self._changed.setdefault(group, {})[time] = count
        self._recent.hold((self.number, group), bounds)

    def _count(self, group: Group, time: int) -> int:
        for counts in (self._changed.get(group), self._writing.get(group)):
            if counts is not None and time in counts:
                return counts[time]
        return self._file.count(self.number, hash_group(group), time)

    def _bounds(self, group: Group) -> Bounds:
        name = (self.number, group)
        bounds = self._recent.find(name)
        if bounds is UNKNOWN:
            bounds = self._find_bounds(group)
            self._recent.hold(name, bounds)
        return bounds

    def _find_bounds(self, group: Group) -> Bounds:
        unwritten = self._unwritten(group)
        if not unwritten:
            return self._file.bounds(self.number, hash_group(group))
        present = [time for time, count in unwritten.items() if count]
        stored = self._file.ascending(self.number, hash_group(group))
        first = min(chain(_first_remaining(stored, unwritten), present), default=None)
        if first is None:
            return None
        last = self._last(group, -BEFORE_ALL)
        assert last is not None
        return first, last

    def _last(self, group: Group, at: int) -> int | None:
        """The last time not after `at` (µs)."""
        unwritten = self._unwritten(group)
        present = [time for time, count in unwritten.items() if count and time <= at]
        stored = self._file.descending(self.number, hash_group(group), at)
        return max(chain(_first_remaining(stored, unwritten), present), default=None)

    def _unwritten(self, group: Group) -> Mapping[int, int]:
        return self._writing.get(group, {}) | self._changed.get(group, {})


class SeenTimesStore:
    """All series in the file. Those that go beyond the journal's `last` sequence number are given up:
    they belong to another journal, or to one that was restored."""

    def __init__(self, file: SeenTimesFile, last: int) -> None:
        self._file = file
        self._recent = RecentBounds()
        self._numbers = count(file.last_number() + 1)
        # Whole series in the file that were not opened yet.
        self._stored: dict[SeriesName, StoredSeries] = {}
        self._given_up: list[int] = []
        self._series: dict[SeriesName, StoredSeenTimes] = {}
        self._rewritten: set[int] = set()
        self._lock = asyncio.Lock()
        for each in file.series():
            if each.sequence is None or each.sequence > last:
                self._given_up.append(each.number)
            else:
                self._stored[each.account, each.digest] = each

    def sequence(self, account: int, digest: str) -> int:
        """The sequence number after which a series must be filled once it is opened; 0 for all."""
        stored = self._stored.get((account, digest))
        return 0 if stored is None or stored.sequence is None else stored.sequence

    def open(self, account: int, digest: str) -> SeenTimes:
        """Open a series, to be filled; `go_live` then makes it live."""
        name = (account, digest)
        if name in self._series:
            self._give_up(name)
        stored = self._stored.pop(name, None)
        number = next(self._numbers) if stored is None else stored.number
        sequence = None if stored is None else stored.sequence
        self._series[name] = StoredSeenTimes(self._file, self._recent, number, sequence)
        return self._series[name]

    def go_live(self, account: int, digests: Iterable[str], sequence: int) -> None:
        """Make these series live: they have all changes up to this sequence number."""
        for _, series in self._opened_series(account, digests):
            series.go_live(sequence)

    def give_up_others(self, needed: Collection[SeriesName]) -> None:
        """Give up the stored series that are not needed."""
        for name in [name for name in self._stored if name not in needed]:
            self._given_up.append(self._stored.pop(name).number)

    def give_up_account(self, account: int) -> None:
        """Give up all series of an account."""
        for name in [each for each in self._stored if each[0] == account]:
            self._given_up.append(self._stored.pop(name).number)
        for name in [each for each in self._series if each[0] == account]:
            self._give_up(name)

    async def write_filled(
        self, account: int, digests: Iterable[str], beyond: int = FILLED
    ) -> None:
        """Write the collected changes of the series that hold more than `beyond` of them."""
        async with self._lock:
            for name, series in self._opened_series(account, digests):
                # The file no longer has a series whole once collected changes are written, and a crash
                # then fills it from the beginning: a whole one is written only when too much is held.
                if series.filling > (FILLED if series.written_up_to is not None else beyond):
                    filled = series.take_filled()
                    await self._file.write(partial(_add, name, series.number, filled))

    async def write(self, written: Written) -> None:
        """Write what has changed. Raises `JournalError`; the next call then writes it, too."""
        async with self._lock:
            for name in [name for name, series in self._series.items() if series.is_given_up]:
                self._give_up(name)
            if self._given_up:
                await self._file.write(partial(_give_up, self._given_up))
                self._given_up = []
            taken = {name: series for name, series in self._series.items() if series.take_changes()}
            if taken:
                await self._write(taken, written)

    async def remove_some(self) -> bool:
        """Remove some times of given up series from the file; False when none is left."""
        return await self._file.write(first_seen_file.remove_step)

    @asynccontextmanager
    async def rewriting(self, account: int, written: Written) -> AsyncIterator[None]:
        """Rewrite the account's past, in the journal and in the windows, within the block.

        If the process ends in the block, the next start fills the account's series from the beginning.
        """
        async with self._lock:
            self._rewritten.add(account)
            await self._file.write(partial(first_seen_file.forget_sequences, account=account))
            for (number, _), series in self._series.items():
                if number == account:
                    series.written_up_to = None
        yield
        self._rewritten.discard(account)
        await self.write(written)
        await self._file.empty_log()

    async def _write(self, taken: dict[SeriesName, StoredSeenTimes], written: Written) -> None:
        stored: dict[SeriesName, StoredSeenTimes] = {}
        try:
            await written()
            writable = {name: series for name, series in taken.items() if series.is_writable}
            await self._file.write(partial(_set, writable, frozenset(self._rewritten)))
            stored = writable
        finally:
            for name, series in taken.items():
                series.end_writing(
                    was_written=name in stored, is_whole=name[0] not in self._rewritten
                )

    def _opened_series(
        self, account: int, digests: Iterable[str]
    ) -> list[tuple[SeriesName, StoredSeenTimes]]:
        names = [(account, digest) for digest in digests]
        return [(name, self._series[name]) for name in names if name in self._series]

    def _give_up(self, name: SeriesName) -> None:
        self._given_up.append(self._series.pop(name).number)


def _add(
    name: SeriesName, series: int, filled: Sequence[CountChange], connection: sqlite3.Connection
) -> None:
    first_seen_file.set_sequence(connection, StoredSeries(series, *name, None))
    first_seen_file.add_counts(connection, series, filled)


def _set(
    taken: dict[SeriesName, StoredSeenTimes],
    rewritten: Collection[int],
    connection: sqlite3.Connection,
) -> None:
    for name, series in taken.items():
        changes, sequence = series.changes_to_write()
        first_seen_file.set_counts(connection, series.number, changes)
        stored = StoredSeries(series.number, *name, None if name[0] in rewritten else sequence)
        first_seen_file.set_sequence(connection, stored)


def _give_up(given_up: Sequence[int], connection: sqlite3.Connection) -> None:
    for series in given_up:
        first_seen_file.give_up(connection, series)


async def write_behind(store: SeenTimesStore, written: Written) -> None:
    """Write every `EVERY_S` seconds until cancelled; log the first of several failures, and retry."""
    failing = False
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await store.write(written)
            while await store.remove_some():
                await asyncio.sleep(0)
        except JournalError as error:
            if not failing:
                get_logger().error("ages_not_written", error=str(error))
            failing = True
        else:
            failing = False


@asynccontextmanager
async def open_seen_times(folder: Path, last: int) -> AsyncIterator[SeenTimesStore]:
    """Open the file of a data folder whose lock is held; `last` is the journal's last sequence number.

    Raises `JournalError`.
    """
    async with open_seen_times_file(folder) as file:
        yield SeenTimesStore(file, last)


def _first_remaining(stored: Iterator[int], unwritten: Mapping[int, int]) -> Iterator[int]:
    """The first of the stored times that no unwritten change removes, or nothing."""
    for time in stored:
        if unwritten.get(time, 1):
            yield time
            return
