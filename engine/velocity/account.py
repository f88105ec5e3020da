"""One account's series: whole ones, and ones that are being filled while traffic goes on.

An account over its cap gives up its whole largest series, not some records of each: a series'
values are exact or missing, never approximate. A flood of new keys makes the series that it is
counted in the largest, so that other rules keep their history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from tollkeeper.engine.log import get_logger
from tollkeeper.engine.velocity.contract import (
    AbandonedError,
    Columns,
    Fill,
    Group,
    NotWholeError,
    Read,
    Record,
    SeriesPart,
    SeriesPlan,
    SeriesStatus,
    State,
    Window,
)
from tollkeeper.engine.velocity.elements import group_of
from tollkeeper.engine.velocity.first_seen import FirstSeenSeries, SeenTimes
from tollkeeper.engine.velocity.groups import Reader
from tollkeeper.engine.velocity.plan import merge_plans
from tollkeeper.engine.velocity.series import Memory, Series
from tollkeeper.engine.velocity.series_set import ElementsChange, SeriesSet, StateChange
from tollkeeper.grammar.program import Value

MAX_ELEMENTS = 100
"""The most elements that a record adds to a series: a payment's transactions."""
PART_ELEMENTS = 50_000
"""About how many elements each part of a snapshot has."""
SEAL_STEP = 500
"""How many changes one call of `seal` merges, so that it takes about a millisecond."""


@dataclass
class SeriesFilling:
    """Series being filled. `deferred` is what the changes observed meanwhile remove from and add to
    them, which `seal` merges; `prepared` are the series whose large groups have been indexed for fast reads."""

    series_set: SeriesSet
    deferred: deque[ElementsChange] = field(default_factory=deque)
    prepared: set[str] = field(default_factory=set)


class OwnReaders(NamedTuple):
    """How to read `windows` in a record's own groups.

    `readers` has each window's position among the record's groups, and its reader. `ages`, to be
    read before the record is counted, and `streaks`, to be read after, have a window's index, the
    position of its group, and its series.
    """

    windows: tuple[Window, ...]
    readers: list[tuple[int, Reader]]
    ages: list[tuple[int, int, FirstSeenSeries]]
    streaks: list[tuple[int, int, FirstSeenSeries]]


class AccountWindows:
    """What `Windows` holds for one account, at most `cap` elements."""

    def __init__(
        self,
        number: int,
        cap: int,
        late: int,
        seen_times: Callable[[int, str], SeenTimes],
        memory: Memory,
    ) -> None:
        self._number = number
        self._cap = cap
        self._late = late
        self._memory = memory
        self._seen_times = seen_times
        self._whole = SeriesSet({}, {}, memory.clock(), memory.queue())
        self._fillings: dict[int, SeriesFilling] = {}
        # How many records may be observed before the cap is checked again.
        self._records_until_check = 0
        # By `id` of a window or of a tuple of windows; the value refers to the key, which so stays alive.
        self._readers: dict[int, tuple[Window, Reader]] = {}
        self._own: dict[int, OwnReaders] = {}

    @property
    def entries(self) -> int:
        """How many elements all series hold."""
        return sum(series.entries for each in self._all() for series in each.windows.values())

    @property
    def max_elements_per_record(self) -> int:
        """The most elements that a record adds to all series."""
        return MAX_ELEMENTS * sum(len(each.windows) for each in self._all())

    def require(self, reads: Sequence[Read], own: Sequence[tuple[Window, ...]] = ()) -> None:
        """Prepare the readers of these windows. Raises `NotWholeError` when one can't be read."""
        for window, _ in reads:
            if id(window) not in self._readers:
                self._readers[id(window)] = (window, self._new_reader(window))
        for windows in own:
            if id(windows) not in self._own:
                self._own[id(windows)] = self._new_own_readers(windows)

    def observe(
        self,
        sequence: int,
        record: Record,
        reads: Sequence[Read],
        own: Sequence[tuple[Window, ...]],
    ) -> tuple[Value | None, ...]:
        """Count a live record, and read windows that `require` has prepared."""
        whole, at = self._whole, record.time
        defer = self._deferring(_change(sequence, record)) if self._fillings else ()
        whole.arrive(record.arrived)
        read_values: list[Value | None] = [None] * len(reads)
        if reads:
            self._read(reads, at, read_values, of_earlier=True)
        ages: list[tuple[int, Value | None]] = []
        if record.before is None:
            groups = whole.observe(sequence, record.event, at, record.state)
            if whole.ages:
                try:
                    ages = self._own_ages_at(own, groups, at)
                    whole.put_ages()
                    ages += self._own_streaks(own, groups, at)
                except BaseException:
                    # The file of seen times can't be used: count nothing.
                    whole.undo_observe(record.event, at, record.state)
                    raise
        else:
            assert not own
            whole.change(_change(sequence, record))
        for filling, elements in defer:
            filling.deferred.append(elements)
        self._records_until_check -= 1
        if self._records_until_check < 0 and self.enforce_cap():
            self.require(reads, own)
        if reads:
            self._read(reads, at, read_values, of_earlier=False)
        if not own:
            return tuple(read_values)
        own_values = self._own_at(own, groups, at)
        for index, age in ages:
            own_values[index] = age
        return (*own_values, *read_values)

    def read(self, reads: Sequence[Read], at: int) -> tuple[Value | None, ...]:
        """Read windows that `require` has prepared, as of event time `at` (µs)."""
        values: list[Value | None] = [None] * len(reads)
        self._read(reads, at, values, of_earlier=True)
        self._read(reads, at, values, of_earlier=False)
        return tuple(values)

    def lost_at(
        self, reads: Sequence[Read], own: Sequence[tuple[Window, ...]], at: int
    ) -> tuple[int, ...]:
        """The indexes of values that can't be exact, see `Observation`."""
        too_late = at < self._whole.clock.newest - self._late
        if not (self._whole.lost or too_late):
            return ()
        windows = (*chain.from_iterable(own), *(window for window, _ in reads))
        return tuple(
            index
            for index, window in enumerate(windows)
            if window.over is not None and (too_late or self._series_of(window) is None)
        )

    def settle(self, sequence: int, record: Record, settled: State) -> None:
        """Count a live record's decision in the series that read decisions."""
        if self._fillings or self._whole.reads_decision(record.event):
            event, time = record.event, record.time
            self.change(StateChange(sequence, event, time, record.state, settled, decided=True))

    def change(self, change: StateChange) -> None:
        """Count a live change, and defer it for the series that are being filled."""
        defer = self._deferring(change)
        self._whole.change(change)
        for filling, elements in defer:
            filling.deferred.append(elements)

    def enforce_cap(self) -> bool:
        """Give up the largest series while there are more elements than the cap; whether any was."""
        gives_up = False
        while (entries := self.entries) > self._cap:
            gives_up = True
            series = self.give_up_largest()
            get_logger().error(
                "windows_over_cap", account=self._number, series=series, cap=self._cap
            )
        self._records_until_check = (self._cap - entries) // max(1, self.max_elements_per_record)
        return gives_up

    def give_up_largest(self) -> str:
        """Give up the series with the most elements; returns its digest."""
        series_set, digest = max(
            ((each, digest) for each in self._all() for digest in each.windows),
            key=lambda item: item[0].windows[item[1]].entries,
        )
        series_set.give_up(digest)
        self._forget_readers()
        return digest

    def begin(self, number: int, up_to: int, plans: Sequence[SeriesPlan]) -> Fill:
        """Begin to fill the series that `plans` need and that are not whole."""
        clock = self._memory.clock()
        windows: dict[str, Series] = {}
        ages: dict[str, FirstSeenSeries] = {}
        for plan in merge_plans(plans):
            series = self._whole.windows.get(plan.digest)
            if plan.over is not None and (series is None or series.over < plan.over):
                windows[plan.digest] = Series(
                    plan, plan.over, up_to, self._late, clock, self._memory
                )
            if plan.ages and plan.digest not in self._whole.ages:
                seen_times = self._seen_times(self._number, plan.digest)
                ages[plan.digest] = FirstSeenSeries(plan, seen_times, up_to)
        if windows or ages:
            self._fillings[number] = SeriesFilling(
                SeriesSet(windows, ages, clock, self._memory.queue())
            )
        longest = max((series.over for series in windows.values()), default=0)
        return Fill(
            number=number,
            account=self._number,
            series=tuple(dict.fromkeys([*windows, *ages])),
            reach=None if ages else longest + self._late,
            up_to=up_to,
        )

    def count_stored(self, fill: Fill, records: Iterable[Record]) -> None:
        """Count stored records in the series of a fill."""
        if not fill.series:
            return
        self._filling(fill).series_set.count_stored(records)

    def follow(self, records: Sequence[Record], up_to: int) -> None:
        """Count stored records up to a sequence number in the whole series."""
        self._whole.reach(up_to)
        self._whole.count_stored(records)
        for filling in self._fillings.values():
            elements_changed = filling.series_set.elements_changed
            filling.deferred.extend(elements_changed(_change(up_to, each)) for each in records)

    def restore(self, fill: Fill, series: str, newest: int, columns: Iterable[Columns]) -> None:
        """Load a series' elements from a snapshot taken when `newest` (µs) was the latest arrival."""
        series_set = self._filling(fill).series_set
        for each in columns:
            series_set.windows[series].groups.load(each)
        series_set.arrive(newest)

    def snapshot(self) -> Iterator[SeriesPart]:
        """The elements of each whole series."""
        newest = self._whole.clock.newest
        for digest, series in self._whole.windows.items():
            start = 0
            while start >= 0:
                start, columns = series.groups.dump(start, PART_ELEMENTS)
                yield SeriesPart(self._number, digest, self._late + series.over, newest, columns)

    def seal(self, fill: Fill) -> bool:
        """Merge some deferred changes; True once none is left and the series are whole."""
        if not fill.series:
            return True
        filling = self._filling(fill)
        whole, series_set = self._whole, filling.series_set
        whole.clock.newest = max(whole.clock.newest, series_set.clock.newest)
        series_set.arrive(whole.clock.newest)
        for _ in range(min(SEAL_STEP, len(filling.deferred))):
            series_set.change_elements(filling.deferred.popleft())
        if filling.deferred:
            return False
        for digest, series in series_set.windows.items():
            if digest not in filling.prepared:
                if not series.groups.prepare():
                    return False
                filling.prepared.add(digest)
        whole.join(series_set)
        self._forget_readers()
        del self._fillings[fill.number]
        return True

    def keep(self, plans: Sequence[SeriesPlan]) -> None:
        """Drop what none of `plans` needs."""
        needed = {plan.digest: plan for plan in merge_plans(plans)}
        for each in self._all():
            each.keep(needed)
        self._forget_readers()
        for number, filling in list(self._fillings.items()):
            series_set = filling.series_set
            if not (series_set.windows or series_set.ages or series_set.lost):
                del self._fillings[number]

    def statuses(self) -> tuple[SeriesStatus, ...]:
        """The state of each series for windows."""
        filling = [
            SeriesStatus(digest, "filling", series.keys, series.entries)
            for each in self._fillings.values()
            for digest, series in each.series_set.windows.items()
        ]
        whole = [
            SeriesStatus(digest, "whole", series.keys, series.entries)
            for digest, series in self._whole.windows.items()
        ]
        lost = [SeriesStatus(digest, "over_cap", 0, 0) for digest in sorted(self._whole.lost)]
        return (*whole, *filling, *lost)

    def _read(
        self, reads: Sequence[Read], at: int, values: list[Value | None], *, of_earlier: bool
    ) -> None:
        """Set in `values` the reads of windows whose `is_of_earlier` is `of_earlier`."""
        ages, is_late = self._whole.ages, at < self._whole.clock.newest - self._late
        for index, (window, key) in enumerate(reads):
            if key is None or window.is_of_earlier is not of_earlier:
                continue
            if window.over is None:
                values[index] = ages[window.series].read(window, group_of(key), at)
            elif not is_late:
                values[index] = self._readers[id(window)][1](group_of(key), at)

    def _own_ages_at(
        self, own: Sequence[tuple[Window, ...]], groups: Sequence[Group | None], at: int
    ) -> list[tuple[int, Value | None]]:
        """The ages of a record's own groups, each with its index among all windows of `own`."""
        ages: list[tuple[int, Value | None]] = []
        before = 0
        for windows in own:
            for index, position, series in self._own[id(windows)].ages:
                group = groups[position]
                if group is not None:
                    ages.append((before + index, series.read(windows[index], group, at)))
            before += len(windows)
        return ages

    def _own_streaks(
        self, own: Sequence[tuple[Window, ...]], groups: Sequence[Group | None], at: int
    ) -> list[tuple[int, Value | None]]:
        """The streaks of a record's own groups, as `_own_ages_at`. The last part of such a group, which
        says whether the record meets the `where`, is not part of the key that is read."""
        streaks: list[tuple[int, Value | None]] = []
        before = 0
        for windows in own:
            for index, position, series in self._own[id(windows)].streaks:
                group = groups[position]
                if group is not None:
                    assert isinstance(group, tuple)
                    streaks.append((before + index, series.read(windows[index], group[:-1], at)))
            before += len(windows)
        return streaks

    def _own_at(
        self, own: Sequence[tuple[Window, ...]], groups: Sequence[Group | None], at: int
    ) -> list[Value | None]:
        """The aggregates over a record's own groups, None for ages and streaks."""
        if at < self._whole.clock.newest - self._late:
            return [None] * sum(map(len, own))
        return [
            None if (group := groups[position]) is None else read(group, at)
            for windows in own
            for position, read in self._own[id(windows)].readers
        ]

    def _deferring(self, change: StateChange) -> list[tuple[SeriesFilling, ElementsChange]]:
        """What each filling is to defer of a change. It is called before anything is counted: computing
        it may read the journal, for the states' environments, and fail."""
        return [
            (filling, filling.series_set.elements_changed(change))
            for filling in self._fillings.values()
        ]

    def _forget_readers(self) -> None:
        self._readers.clear()
        self._own.clear()

    def _new_own_readers(self, own: tuple[Window, ...]) -> OwnReaders:
        positions, ages = self._whole.group_positions(None), self._whole.ages
        return OwnReaders(
            own,
            [(positions.get(each.series, 0), self._new_reader(each)) for each in own],
            [
                (index, positions[each.series], ages[each.series])
                for index, each in enumerate(own)
                if each.over is None and each.is_of_earlier
            ],
            [
                (index, positions[each.series], ages[each.series])
                for index, each in enumerate(own)
                if each.over is None and not each.is_of_earlier
            ],
        )

    def _new_reader(self, window: Window) -> Reader:
        digest = window.series
        if window.over is None:
            if digest not in self._whole.ages:
                raise NotWholeError(digest)
            return _read_nothing
        series = self._series_of(window)
        if series is not None:
            return series.reader(window)
        if digest not in self._whole.lost:
            raise NotWholeError(digest)
        return _read_nothing

    def _series_of(self, window: Window) -> Series | None:
        """The whole series of a window, None when it does not reach back as far as the window."""
        series = self._whole.windows.get(window.series)
        return None if series is None or series.over < (window.over or 0) else series

    def _all(self) -> list[SeriesSet]:
        return [self._whole, *(filling.series_set for filling in self._fillings.values())]

    def _filling(self, fill: Fill) -> SeriesFilling:
        filling = self._fillings.get(fill.number)
        if filling is None:
            raise AbandonedError(fill.number)
        return filling


def _change(sequence: int, record: Record) -> StateChange:
    return StateChange(sequence, record.event, record.time, record.before, record.state)


def _read_nothing(_group: object, _at: int) -> None:
    """The reader of a series that was given up, and of windows that `ages` and `streaks` read."""
