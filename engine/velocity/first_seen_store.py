"""The times at which keys were seen, of all accounts' series, written to the file behind the traffic.

Each write holds what all sequence numbers up to one made of the series, and that number with it: a
start fills each series from there on. Nothing is written before the journal has it.

While a series is filled its changes are gathered as they come, and nobody reads it. A change to a
live one gives the count that a time has from then on, so that it does not matter whether a read
finds it written already.
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
"""Of how many groups, of all accounts, the first and the last time are held at least."""

Bounds: TypeAlias = tuple[int, int] | None
"""The first and the last time of a group, None for one that was never seen."""
Counts: TypeAlias = dict[Group, dict[int, int]]
"""How often a group was seen at each time (µs)."""
EVERY_S = 0.5
"""How often what changed is written."""
FILLED = 50_000
"""So many filled times of a series wait before they are written."""

SeriesName: TypeAlias = tuple[int, str]
"""An account, and the digest of one of its series."""
Written: TypeAlias = Callable[[], Awaitable[None]]
"""Done once the journal has written or refused all that it was given before."""


class Unknown(Enum):
    """Of a group whose bounds are not held."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN


class RecentBounds:
    """The bounds of groups that were read recently: at most twice `CACHED`.

    What was not asked for since as many others were is forgotten with them.
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
    """The series `number` of the file; `written_place` is the sequence number up to which it is
    whole there."""

    def __init__(
        self, file: SeenTimesFile, recent: RecentBounds, number: int, written_up_to: int | None
    ) -> None:
        self.number = number
        self.written_up_to = written_up_to
        self.is_given_up = False
        self._file = file
        self._recent = recent
        self._sequence = 0
        # None once it is live.
        self._filled_series: list[CountChange] | None = []
        self._changed: Counts = {}
        self._writing: Counts = {}
        self._writing_up_to = BEFORE_ALL
        self._was_undone = False

    def reach(self, sequence: int) -> None:
        if sequence > self._sequence:
            self._sequence = sequence
        elif sequence <= self._writing_up_to:
            # What is on its way to the file has been withdrawn.
            self._was_undone = True

    def add(self, group: Group, time: int) -> None:
        if self._filled_series is not None:
            self._filled_series.append((group, time, 1))
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
        if self._filled_series is not None:
            self._filled_series.append((group, time, -1))
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
        """How many filled times wait to be written."""
        return len(self._filled_series or ())

    def take_filled(self) -> list[CountChange]:
        """What is to be added to the file, where the series is not whole from then on."""
        taken, self._filled_series = self._filled_series or [], []
        self.written_up_to = None
        return taken

    def go_live(self, sequence: int) -> None:
        """It holds all that sequence numbers up to `sequence` made of it, and is read from now on."""
        filled, self._filled_series = self._filled_series or [], None
        self._sequence = max(self._sequence, sequence)
        for group, time, change in filled:
            (self.add if change > 0 else self.remove)(group, time)

    def take_changes(self) -> bool:
        """Holds what changed so far apart, to be written; whether there is anything."""
        if self._filled_series is not None or (
            not self._changed and self._sequence == self.written_up_to
        ):
            return False
        self._writing, self._changed = self._changed, {}
        self._writing_up_to = self._sequence
        self._was_undone = False
        return True

    @property
    def is_lasting(self) -> bool:
        """Whether nothing of what was taken has been withdrawn since."""
        return not self._was_undone

    def taken(self) -> tuple[list[CountChange], int]:
        """What was taken, with the last sequence number that made some of it."""
        changes = [
            (group, time, count)
            for group, counts in self._writing.items()
            for time, count in counts.items()
        ]
        return changes, self._writing_up_to

    def end_writing(self, *, was_written: bool, is_whole: bool) -> None:
        """What was taken is in the file, or changed again; `is_whole` tells whether the series is
        whole in the file with it."""
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
            bounds = self._found_bounds(group)
            self._recent.hold(name, bounds)
        return bounds

    def _found_bounds(self, group: Group) -> Bounds:
        unwritten = self._unwritten(group)
        if not unwritten:
            return self._file.bounds(self.number, hash_group(group))
        there = [time for time, count in unwritten.items() if count]
        kept = self._file.upwards(self.number, hash_group(group))
        first = min(chain(_remaining(kept, unwritten), there), default=None)
        if first is None:
            return None
        last = self._last(group, -BEFORE_ALL)
        assert last is not None
        return first, last

    def _last(self, group: Group, at: int) -> int | None:
        """The last time not after `at` (µs)."""
        unwritten = self._unwritten(group)
        there = [time for time, count in unwritten.items() if count and time <= at]
        kept = self._file.downwards(self.number, hash_group(group), at)
        return max(chain(_remaining(kept, unwritten), there), default=None)

    def _unwritten(self, group: Group) -> Mapping[int, int]:
        return self._writing.get(group, {}) | self._changed.get(group, {})


class SeenTimesStore:
    """`last` is the journal's last sequence number: a series that is beyond it is another journal's."""

    def __init__(self, file: SeenTimesFile, last: int) -> None:
        self._file = file
        self._recent = RecentBounds()
        self._numbers = count(file.last_number() + 1)
        self._kept: dict[SeriesName, StoredSeries] = {}
        self._given_up: list[int] = []
        self._series: dict[SeriesName, StoredSeenTimes] = {}
        self._rewritten: set[int] = set()
        self._lock = asyncio.Lock()
        for each in file.series():
            if each.sequence is None or each.sequence > last:
                self._given_up.append(each.number)
            else:
                self._kept[each.account, each.digest] = each

    def sequence(self, account: int, digest: str) -> int:
        """The sequence number beyond which `open` leaves a series to be filled, 0 for all of them."""
        kept = self._kept.get((account, digest))
        return 0 if kept is None or kept.sequence is None else kept.sequence

    def open(self, account: int, digest: str) -> SeenTimes:
        """A series to be filled, then to go live."""
        name = (account, digest)
        if name in self._series:
            self._give_up(name)
        kept = self._kept.pop(name, None)
        number = next(self._numbers) if kept is None else kept.number
        sequence = None if kept is None else kept.sequence
        self._series[name] = StoredSeenTimes(self._file, self._recent, number, sequence)
        return self._series[name]

    def go_live(self, account: int, digests: Iterable[str], sequence: int) -> None:
        """The series hold all that sequence numbers up to `sequence` made of them, and are read
        from now on."""
        for _, series in self._filled_series(account, digests):
            series.go_live(sequence)

    def give_up_others(self, needed: Collection[SeriesName]) -> None:
        """Gives up what the file has of series that are not needed."""
        for name in [name for name in self._kept if name not in needed]:
            self._given_up.append(self._kept.pop(name).number)

    def give_up_account(self, account: int) -> None:
        """Gives up all that the file has of an account."""
        for kept in [of for of in self._kept if of[0] == account]:
            self._given_up.append(self._kept.pop(kept).number)
        for live in [of for of in self._series if of[0] == account]:
            self._give_up(live)

    async def write_filled(
        self, account: int, digests: Iterable[str], beyond: int = FILLED
    ) -> None:
        """Writes what was filled of the series that hold more than `beyond` times of it."""
        async with self._lock:
            for name, series in self._filled_series(account, digests):
                # One that is whole in the file stays so until what is new is too much to hold.
                if series.filling > (FILLED if series.written_up_to is not None else beyond):
                    filled = series.take_filled()
                    await self._file.write(partial(_add, name, series.number, filled))

    async def write(self, written: Written) -> None:
        """Writes what changed. Raises `JournalError`, and holds on to it then."""
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
        """Removes some of what was given up; false when nothing is left."""
        return await self._file.write(first_seen_file.remove_step)

    @asynccontextmanager
    async def rewriting(self, account: int, written: Written) -> AsyncIterator[None]:
        """Within it the account's past changes, in the journal and in the windows.

        Should that be cut off, the next start fills the account's series from the beginning.
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
        done: dict[SeriesName, StoredSeenTimes] = {}
        try:
            await written()
            lasting = {name: series for name, series in taken.items() if series.is_lasting}
            await self._file.write(partial(_set, lasting, frozenset(self._rewritten)))
            done = lasting
        finally:
            for name, series in taken.items():
                series.end_writing(
                    was_written=name in done, is_whole=name[0] not in self._rewritten
                )

    def _filled_series(
        self, account: int, digests: Iterable[str]
    ) -> list[tuple[SeriesName, StoredSeenTimes]]:
        found = [(name, self._series.get(name)) for name in ((account, each) for each in digests)]
        return [(name, series) for name, series in found if series is not None]

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
        changes, sequence = series.taken()
        first_seen_file.set_counts(connection, series.number, changes)
        kept = StoredSeries(series.number, *name, None if name[0] in rewritten else sequence)
        first_seen_file.set_sequence(connection, kept)


def _give_up(given_up: Sequence[int], connection: sqlite3.Connection) -> None:
    for series in given_up:
        first_seen_file.give_up(connection, series)


async def write_behind(store: SeenTimesStore, written: Written) -> None:
    """Write again and again, until cancelled; what fails is logged once, and tried again."""
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
    """The file of a data folder whose lock is held. Raises `JournalError`."""
    async with open_seen_times_file(folder) as file:
        yield SeenTimesStore(file, last)


def _remaining(kept: Iterator[int], unwritten: Mapping[int, int]) -> Iterator[int]:
    """The first of the times that no unwritten change takes out."""
    for time in kept:
        if unwritten.get(time, 1):
            yield time
            return
