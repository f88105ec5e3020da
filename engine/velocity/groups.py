"""The elements of one series by group, as far back as its longest window reaches.

`_groups.c` does the same in C and is used where it could be built. All tests of windows run on both.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, TypeAlias, TypeVar

from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    Columns,
    Group,
    Put,
    Window,
)
from tollkeeper.engine.velocity.run import Run
from tollkeeper.grammar.program import AggregateFunction, Value

T = TypeVar("T")

BUCKETS = 128
"""The number of buckets of time that a series' reach is divided into; groups expire by bucket."""
SWEEP = 8
"""How many groups that came up for expiry are swept for each record."""

Reader: TypeAlias = Callable[[Group, int], Value | None]
"""The aggregate over a group as of an event time (µs)."""
HeldGroup: TypeAlias = int | tuple[int, Any] | Run
"""The elements of a group. A single one, as in most groups, is held as its time, or as a pair of time
and value in a series with values."""

EMPTY = Run(valued=False)
"""What is held for a group whose elements were removed, until it comes up for expiry."""


class Clock:
    """The latest arrival (µs), shared by the series of an account.

    No window is read at an event time that is further behind it than records may be late.
    """

    __slots__ = ("newest",)

    def __init__(self) -> None:
        self.newest = BEFORE_ALL


class Groups:
    """Elements by group. Each group is in exactly one bucket, that of a time at which it had an element.

    Elements further than `reach` (µs) behind the clock are in no window any more; `lengths` (µs) are
    those of `distinct` windows.
    """

    def __init__(
        self, clock: Clock, reach: int, valued: bool, lengths: tuple[int, ...], few: int
    ) -> None:
        self.clock = clock
        self.reach = reach
        self.lengths = lengths
        self._few = few
        self.entries = 0
        self._groups: dict[Group, HeldGroup] = {}
        self._valued = valued
        self._width = reach // BUCKETS
        self._buckets: dict[int, list[Group]] = {}
        # The bucket used last, and the times (µs) that belong to it: from `_from` up to before `_to`.
        self._bucket: list[Group] = []
        self._from = self._to = BEFORE_ALL
        self._due: deque[Group] = deque()
        self._preparing: Iterator[HeldGroup] | None = None

    @property
    def keys(self) -> int:
        """How many groups are held."""
        return len(self._groups)

    @property
    def horizon(self) -> int:
        """The time (µs) up to which elements are in no window any more."""
        return self.clock.newest - self.reach

    def put(self, time: int, group: Group, value: Any) -> None:
        """Add one element of event time `time` (µs)."""
        self.entries += 1
        held = self._groups.get(group)
        if held is None:
            self._groups[group] = (time, value) if self._valued else time
            if not self._from <= time < self._to:
                self._set_bucket(time)
            self._bucket.append(group)
        elif not isinstance(held, Run):
            run = self._groups[group] = Run(self._valued)
            run.insert(*(held if isinstance(held, tuple) else (held, True)))
            run.insert(time, value)
        elif held is EMPTY:
            self._groups[group] = (time, value) if self._valued else time
        elif held.long is not None:
            self.entries -= held.long.put(time, value, self.horizon)
        else:
            times = held.times
            if times and time < times[-1]:
                held.insert(time, value)
            else:
                # `Run.insert` for an element in order, inlined: nearly all are.
                times.append(time)
                if held.values is not None:
                    held.values.append(value)
            if times and times[len(times) >> 1] <= self.clock.newest - self.reach:
                self.entries -= held.trim(self.horizon)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Remove one element, if it is there."""
        held = self._groups.get(group)
        if isinstance(held, Run):
            self.entries -= held.remove(time, value)
        elif held is not None and held == ((time, value) if self._valued else time):
            self._groups[group] = EMPTY
            self.entries -= 1

    def pass_buckets(self) -> int:
        """Mark the groups that come up for expiry; returns the arrival (µs) at which the next ones do."""
        edge = self.horizon // self._width
        for number in [number for number in self._buckets if number < edge]:
            self._due.extend(self._buckets.pop(number))
        self._bucket, self._from, self._to = [], BEFORE_ALL, BEFORE_ALL
        return (edge + 1) * self._width + self.reach

    def sweep(self) -> bool:
        """Remove the expired elements of a few marked groups; whether marked groups are left."""
        for _ in range(min(SWEEP, len(self._due))):
            group = self._due.popleft()
            latest = self._shrink(group, self._groups[group])
            if latest is None:
                del self._groups[group]
            else:
                self._buckets.setdefault(latest // self._width, []).append(group)
        return bool(self._due)

    def reader(
        self,
        window: Window,
        function: AggregateFunction,
        over: int,
        recount: Callable[[Sequence[Any]], Value | None],
        _scale: int,
    ) -> Reader:
        """The reader of a window of the length `over` (µs); `recount` aggregates values."""
        return (
            self._counter(over) if function == "count" else self._recounter(window, over, recount)
        )

    def prepare(self) -> bool:
        """Index one large group for `distinct` windows; True once all are indexed."""
        if self._preparing is None:
            self._preparing = iter(list(self._groups.values()))
        for held in self._preparing:
            if not self.lengths or not isinstance(held, Run):
                continue
            if len(held.times) > self._few:
                held.lengthen(self.lengths)
                return False
            if held.long is not None and held.long.distinct is None:
                held.long.index(self.lengths)
                return False
        self._preparing = None
        return True

    def dump(self, start: int, most: int) -> tuple[int, Columns]:
        """About `most` elements, see `dump_groups`."""
        return dump_groups(self._groups, _elements, self._valued, start, most)

    def load(self, columns: Columns) -> None:
        """Add what `dump` returned. Raises ValueError for columns of different lengths."""
        for group, time, value in elements_in(columns, self._valued):
            self.put(time, group, value)

    def _set_bucket(self, time: int) -> None:
        number = time // self._width
        self._bucket = self._buckets.setdefault(number, [])
        self._from = number * self._width
        self._to = self._from + self._width

    def _shrink(self, group: Group, held: HeldGroup) -> int | None:
        """Remove the group's expired elements; returns its latest time, None when none is left."""
        horizon = self.horizon
        if isinstance(held, Run):
            if held and held.latest <= horizon:
                self.entries -= len(held)
                return None
            if held.long is not None:
                self.entries -= held.long.shrink(horizon)
                return held.latest
            self.entries -= held.trim(horizon)
            if len(held) == 1:
                self._groups[group] = (
                    (held.times[0], held.values[0]) if held.values else held.times[0]
                )
            return held.latest if held else None
        time = held[0] if isinstance(held, tuple) else held
        if time > horizon:
            return time
        self.entries -= 1
        return None

    def _counter(self, over: int) -> Reader:
        find = self._groups.get

        def read(group: Group, at: int) -> int:
            held: Any = find(group)
            if isinstance(held, Run):
                times = held.times
                if held.long is not None:
                    return held.long.count(over, at)
                if not times:
                    return 0
                start = at - over
                low = 0 if times[0] > start else bisect_right(times, start)
                return (len(times) if times[-1] <= at else bisect_right(times, at, low)) - low
            if isinstance(held, tuple):
                held = held[0]
            return 1 if held is not None and at - over < held <= at else 0

        return read

    def _recounter(
        self, window: Window, over: int, recount: Callable[[Sequence[Any]], Value | None]
    ) -> Reader:
        find = self._groups.get
        of_none = recount(())

        def read(group: Group, at: int) -> Value | None:
            held = find(group)
            if isinstance(held, Run):
                times, values = held.times, held.values
                if len(times) > self._few:
                    held.lengthen(self.lengths)
                elif values and times[0] > at - over and times[-1] <= at:
                    return recount(values)
                return held.read(window, at) if times or held.long is not None else of_none
            if isinstance(held, tuple):
                return recount(held[1:]) if at - over < held[0] <= at else of_none
            return of_none

        return read


class Queue:
    """Elements on their way into groups of several series; after `flush`, none is waiting.

    In C, up to 64 wait, so that the memory of all their groups is fetched at once. Here, none waits.
    """

    def put_into(self, groups: Groups) -> Put:
        """The `Put` of groups, by way of this queue."""
        return groups.put

    def flush(self) -> None:
        """Put all that wait."""


def _elements(held: HeldGroup) -> list[tuple[int, Any]]:
    if isinstance(held, Run):
        return list(held.elements())
    return [held if isinstance(held, tuple) else (held, True)]


def dump_groups(
    groups: Mapping[Group, T],
    elements_of: Callable[[T], list[tuple[int, Any]]],
    valued: bool,
    start: int,
    most: int,
) -> tuple[int, Columns]:
    """About `most` elements, in columns, of the groups from index `start` on; with the index to continue
    from, -1 at the end.
    """
    keys: list[Group] = []
    counts: list[int] = []
    times = array("q")
    values: list[Any] = []
    for group, held in islice(groups.items(), start, None):
        if len(times) >= most:
            return start, (keys, counts, times.tobytes(), values)
        start += 1
        elements = elements_of(held)
        if elements:
            keys.append(group)
            counts.append(len(elements))
            times.extend(time for time, _ in elements)
            if valued:
                values += (value for _, value in elements)
    return -1, (keys, counts, times.tobytes(), values)


def elements_in(columns: Columns, valued: bool) -> Iterator[tuple[Group, int, Any]]:
    """The groups, times (µs) and values in what `dump_groups` returned, True in a series without values.

    Raises ValueError for columns of different lengths, before the first element.
    """
    keys, counts, packed, values = columns
    times = array("q", packed)
    fits = len(keys) == len(counts) and sum(counts) == len(times)
    if not fits or (valued and len(values) != len(times)):
        raise ValueError("the columns are of different lengths")
    elements = zip(times, values if valued else repeat(True), strict=False)
    for group, count in zip(keys, counts, strict=True):
        for time, value in islice(elements, count):
            yield group, time, value
