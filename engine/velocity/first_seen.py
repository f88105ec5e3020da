"""`age`, `interval`, `since`, `first` and `streak`, by the times at which a series' groups were seen.

All times are kept, not only the first and the last: when an update removes a record from its group,
the next one becomes the first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any, Protocol

from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    Group,
    SeriesPlan,
    Window,
)
from tollkeeper.grammar.checker.aggregates import MAX_STREAK
from tollkeeper.grammar.program import AggregateFunction


class SeenTimes(Protocol):
    """The event times (µs) at which each group was seen."""

    def reach(self, sequence: int) -> None:
        """The following changes are those of this sequence number."""
        ...

    def add(self, group: Group, time: int) -> None: ...

    def remove(self, group: Group, time: int) -> None:
        """Remove one such time, if it is there."""
        ...

    def first(self, group: Group) -> int | None: ...

    def latest(self, group: Group, at: int) -> int | None:
        """The latest time not after `at` (µs)."""
        ...

    def count_after(self, group: Group, after: int, most: int) -> int:
        """The number of times later than `after` (µs), counted up to `most`."""
        ...

    def discard(self) -> None:
        """Drop all times of the series."""
        ...


class MemorySeenTimes:
    """`SeenTimes` in memory; the time of a group seen once, as most are, is held as a number."""

    def __init__(self) -> None:
        self._seen_times: dict[Group, int | list[int]] = {}

    def reach(self, sequence: int) -> None:
        """Ignored: nothing is stored."""

    def add(self, group: Group, time: int) -> None:
        held = self._seen_times.get(group)
        if held is None:
            self._seen_times[group] = time
        elif isinstance(held, int):
            self._seen_times[group] = [min(held, time), max(held, time)]
        else:
            insort(held, time)

    def remove(self, group: Group, time: int) -> None:
        held = self._seen_times.get(group)
        if isinstance(held, list):
            at = bisect_left(held, time)
            if at < len(held) and held[at] == time:
                del held[at]
            if len(held) == 1:
                self._seen_times[group] = held[0]
        elif held == time:
            del self._seen_times[group]

    def first(self, group: Group) -> int | None:
        held = self._seen_times.get(group)
        return held[0] if isinstance(held, list) else held

    def latest(self, group: Group, at: int) -> int | None:
        held = self._seen_times.get(group)
        if isinstance(held, list):
            before = bisect_right(held, at)
            return held[before - 1] if before else None
        return held if held is not None and held <= at else None

    def count_after(self, group: Group, after: int, most: int) -> int:
        held = self._seen_times.get(group)
        if isinstance(held, list):
            return min(most, len(held) - bisect_right(held, after))
        return 1 if held is not None and held > after else 0

    def discard(self) -> None:
        self._seen_times.clear()


class FirstSeenSeries:
    """A series for `age`, `interval`, `since` and `first`, of event times, or for `streak`, whose
    times are its values, the arrivals. Changes of sequence numbers up to `up_to` come from the
    journal.
    """

    def __init__(self, plan: SeriesPlan, seen_times: SeenTimes, up_to: int) -> None:
        self.plan = plan
        self.seen_times = seen_times
        self.up_to = up_to

    def put(self, time: int, group: Group, value: Any) -> None:
        """Add one element of event time `time` (µs)."""
        self.seen_times.add(group, value if self.plan.valued else time)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Remove one element, if it is there."""
        self.seen_times.remove(group, value if self.plan.valued else time)

    def read(self, window: Window, group: Group, at: int) -> int | None:
        """The value of a window as of event time `at` (µs), see `read_ages`."""
        return read_ages(self.seen_times, window.function, group, at)


def read_ages(
    seen_times: SeenTimes, function: AggregateFunction, group: Group, at: int
) -> int | None:
    """The value of `function` for a group as of event time `at` (µs).

    `age` is the duration (µs) since the first time, `interval` and `since` since the latest one not
    after `at`, `first` whether there is none, `streak` the number of records.
    """
    if function == "streak":
        key = group if isinstance(group, tuple) else (group,)
        last_break = seen_times.latest((*key, False), -BEFORE_ALL)
        after = BEFORE_ALL if last_break is None else last_break
        return seen_times.count_after((*key, True), after, MAX_STREAK)
    if function in ("interval", "since"):
        latest = seen_times.latest(group, at)
        return None if latest is None else at - latest
    first = seen_times.first(group)
    is_new = first is None or first > at
    if function == "first":
        return is_new
    return None if first is None or is_new else at - first
