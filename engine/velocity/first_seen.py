"""`age`, `interval`, `since` and `first`: the event times at which the groups of a series were seen.

Every time is kept, not only the first and the last: an update may take a record out of its group,
and then the one after it is the first.
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
        """What comes next is the change with this sequence number."""
        ...

    def add(self, group: Group, time: int) -> None: ...

    def remove(self, group: Group, time: int) -> None:
        """Takes out one such time, if it is there."""
        ...

    def first(self, group: Group) -> int | None: ...

    def latest(self, group: Group, at: int) -> int | None:
        """The latest time not after `at` (µs)."""
        ...

    def count_after(self, group: Group, after: int, most: int) -> int:
        """How many times are later than `after` (µs), `most` at the most."""
        ...

    def discard(self) -> None:
        """Gives back what the series holds."""
        ...


class MemorySeenTimes:
    """A group seen once, as most are, is held as a bare number."""

    def __init__(self) -> None:
        self._seen_times: dict[Group, int | list[int]] = {}

    def reach(self, sequence: int) -> None:
        """What is gone with the process needs no sequence number."""

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
    """One series' `age`, `interval`, `since` and `first`, by the times at which its groups were seen,
    or its `streak`, by the arrivals that are its values.
    """

    def __init__(self, plan: SeriesPlan, seen_times: SeenTimes, up_to: int) -> None:
        self.plan = plan
        self.seen_times = seen_times
        self.up_to = up_to

    def put(self, time: int, group: Group, value: Any) -> None:
        """Takes in one element of event time `time` (µs)."""
        self.seen_times.add(group, value if self.plan.valued else time)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Takes out one element, if it is there."""
        self.seen_times.remove(group, value if self.plan.valued else time)

    def read(self, window: Window, group: Group, at: int) -> int | None:
        """A duration (µs) from the first or the latest time not after `at`, or whether none is."""
        return read_ages(self.seen_times, window.function, group, at)


def read_ages(
    seen_times: SeenTimes, function: AggregateFunction, group: Group, at: int
) -> int | None:
    """What `function` makes of the times of a group, as of event time `at` (µs)."""
    if function == "streak":
        key = group if isinstance(group, tuple) else (group,)
        broken = seen_times.latest((*key, False), -BEFORE_ALL)
        after = BEFORE_ALL if broken is None else broken
        return seen_times.count_after((*key, True), after, MAX_STREAK)
    if function in ("interval", "since"):
        latest = seen_times.latest(group, at)
        return None if latest is None else at - latest
    first = seen_times.first(group)
    is_new = first is None or first > at
    if function == "first":
        return is_new
    return None if first is None or is_new else at - first
