"""The elements of one series by group, as far back as its longest window reaches.

`_groups.c` is the same in C, for where it could be built: every test of windows runs on both.
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
    Window,
)
from tollkeeper.engine.velocity.run import Run
from tollkeeper.grammar.program import AggregateFunction, Value

T = TypeVar("T")

BUCKETS = 128
"""A series' span is divided into so many buckets, by which groups come up for expiry."""
SWEEP = 8
"""How many groups that came up for expiry are looked at for each record: a record adds fewer."""

Reader: TypeAlias = Callable[[Group, int], Value | None]
"""The aggregate over a group as of an event time (µs)."""
HeldGroup: TypeAlias = int | tuple[int, Any] | Run
"""A group of one element, as most are, without a run: its time, with its value if it has one."""

EMPTY = Run(valued=False)
"""A group whose elements were taken out, until it comes up for expiry."""


class Clock:
    """The latest arrival (µs) that some series have seen.

    Nothing is read at a time that is further behind it than records may be late.
    """

    __slots__ = ("newest",)

    def __init__(self) -> None:
        self.newest = BEFORE_ALL


class Groups:
    """Elements by group. Each group stands in exactly one bucket, of a time when it was in use.

    `reach` (µs) is how far behind the clock an element may be that some window still has; `lengths`
    (µs) are those of the windows that count different values.
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
        # The bucket that was used last, and the times that belong to it.
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
        """No window reaches back to this time (µs) any more."""
        return self.clock.newest - self.reach

    def put(self, time: int, group: Group, value: Any) -> None:
        """Takes in one element of event time `time` (µs)."""
        self.entries += 1
        held = self._groups.get(group)
        if held is None:
            self._groups[group] = (time, value) if self._valued else time
            if not self._from <= time < self._to:
                self._turn_to(time)
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
                # Written out here, as nearly all come in order.
                times.append(time)
                if held.values is not None:
                    held.values.append(value)
            if times and times[len(times) >> 1] <= self.clock.newest - self.reach:
                self.entries -= held.trim(self.horizon)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Takes out one element, if it is there."""
        held = self._groups.get(group)
        if isinstance(held, Run):
            self.entries -= held.remove(time, value)
        elif held is not None and held == ((time, value) if self._valued else time):
            self._groups[group] = EMPTY
            self.entries -= 1

    def pass_buckets(self) -> int:
        """Marks the groups whose time has come; the arrival (µs) that brings the next ones."""
        edge = self.horizon // self._width
        for passed in [bucket for bucket in self._buckets if bucket < edge]:
            self._due.extend(self._buckets.pop(passed))
        self._bucket, self._from, self._to = [], BEFORE_ALL, BEFORE_ALL
        return (edge + 1) * self._width + self.reach

    def sweep(self) -> bool:
        """Looks at a few of the groups whose time has come, and drops what is over.

        Whether some are left.
        """
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
        """How one window of the length `over` (µs) is read, of values by `recount`."""
        return (
            self._counter(over) if function == "count" else self._recounter(window, over, recount)
        )

    def prepare(self) -> bool:
        """Makes one group's different values quick to count; true once all are."""
        if self._preparing is None:
            self._preparing = iter(list(self._groups.values()))
        for held in self._preparing:
            if self.lengths and isinstance(held, Run) and len(held.times) > self._few:
                held.lengthen(self.lengths)
                return False
        self._preparing = None
        return True

    def dump(self, start: int, most: int) -> tuple[int, Columns]:
        """About so many elements of the groups from `start` on, and where to go on, -1 at the end."""
        return dump_groups(self._groups, _elements, self._valued, start, most)

    def load(self, columns: Columns) -> None:
        """Takes in what `dump` gave; ValueError for columns that don't fit together."""
        for group, time, value in elements_in(columns, self._valued):
            self.put(time, group, value)

    def _turn_to(self, time: int) -> None:
        number = time // self._width
        self._bucket = self._buckets.setdefault(number, [])
        self._from = number * self._width
        self._to = self._from + self._width

    def _shrink(self, group: Group, held: HeldGroup) -> int | None:
        """The time of the group's last element that is not over, if there is one."""
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
    """About so many elements of the groups from `start` on, and where to go on, -1 at the end."""
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
    """The groups, times (µs) and values of what `dump_groups` gave, True where none has a value.

    Raises ValueError for columns that don't fit together, before it gives any.
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
