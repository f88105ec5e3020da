"""The number of distinct values of a large group in a window that ends at any time.

A value seen at `t` is in the windows (of one length `over`) that end in [t, t + over). For all times
of a value, the union of these intervals is a few disjoint intervals. So the number of values in the
window that ends at `t` is the number of intervals that begin by `t`, less the number that end by
`t`. Adding or removing one time of a value changes only the interval between the times next to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from tollkeeper.engine.velocity.contract import BEFORE_ALL
from tollkeeper.engine.velocity.tree import Leaf, TreeNode, build_tree, insert_element


class Coverage:
    """The begins and ends (µs) of all values' intervals, for windows of the length `over` (µs).

    Begins and ends up to `folded` are only counted, in `base`: no read is of a time before that.
    """

    __slots__ = ("base", "begins", "ends", "folded", "over")

    def __init__(self, over: int, seen: Iterable[Iterable[int]]) -> None:
        begins, ends = [], []
        for begin, end in (each for times in seen for each in _intervals(times, over)):
            begins.append(begin)
            ends.append(end)
        self.over = over
        self.begins = build_tree(array("q", sorted(begins)), None)
        self.ends = build_tree(array("q", sorted(ends)), None)
        self.folded = BEFORE_ALL
        self.base = 0

    def change(self, time: int, before: int | None, after: int | None, by: int) -> None:
        """Add (`by` 1) or remove (`by` -1) a time of a value.

        `before` and `after` are the value's nearest other times, None where there is none.
        """
        begin = time if before is None else max(time, before + self.over)
        end = time + self.over if after is None else min(time + self.over, after)
        if begin < end:
            self._mark(begin, by)
            self._mark(end, -by)

    def count(self, at: int) -> int:
        """The number of values in the window that ends at `at` (µs)."""
        ended = self.ends.rank(at) if self.ends.first <= at else 0
        return self.base + self.begins.rank(at) - ended

    def fold(self, up_to: int) -> None:
        """Free what only windows that end by `up_to` (µs) need."""
        if up_to > self.folded:
            self.folded = up_to
            self.base += self.begins.drop(up_to) - self.ends.drop(up_to)

    def _mark(self, time: int, by: int) -> None:
        if time <= self.folded:
            self.base += by
        # An interval that ends where another begins is merged with it.
        elif by > 0:
            if not self.ends.remove(time, None):
                self.begins = insert_element(self.begins, time, None)
        elif not self.begins.remove(time, None):
            self.ends = insert_element(self.ends, time, None)


class Distinct:
    """The times (µs) at which each value of a group was seen; a single time is held as a number.

    `coverages` are by the windows' length (µs), made when first read.
    """

    __slots__ = ("coverages", "seen")

    def __init__(self, elements: Iterable[tuple[int, Any]]) -> None:
        self.coverages: dict[int, Coverage] = {}
        self.seen: dict[Any, int | TreeNode] = {}
        for time, value in elements:
            self._add(time, value)

    def count(self, over: int, at: int) -> int:
        """The number of values in the window (at - over, at]."""
        return self.coverage(over).count(at)

    def coverage(self, over: int) -> Coverage:
        """The coverage for windows of a length (µs)."""
        coverage = self.coverages.get(over)
        if coverage is None:
            coverage = self.coverages[over] = Coverage(over, map(_times, self.seen.values()))
        return coverage

    def insert(self, time: int, value: Any) -> None:
        before, after = self._neighbours(time, value)
        for coverage in self.coverages.values():
            coverage.change(time, before, after, 1)
        self._add(time, value)

    def remove(self, time: int, value: Any) -> None:
        """Remove a time of a value, which must have been inserted."""
        self._remove(time, value)
        before, after = self._neighbours(time, value)
        for coverage in self.coverages.values():
            coverage.change(time, before, after, -1)

    def remove_expired(self, expired: Leaf) -> None:
        """Remove the earliest elements, which no window reaches back to any more."""
        for coverage in self.coverages.values():
            coverage.fold(expired.times[-1] + coverage.over)
        for time, value in zip(expired.times, expired.values or (), strict=True):
            self._remove(time, value)

    def _neighbours(self, time: int, value: Any) -> tuple[int | None, int | None]:
        seen = self.seen.get(value)
        if seen is None:
            return None, None
        if isinstance(seen, int):
            return (seen, None) if seen <= time else (None, seen)
        return seen.latest(time), seen.earliest(time)

    def _add(self, time: int, value: Any) -> None:
        seen = self.seen.get(value)
        if seen is None:
            self.seen[value] = time
        elif isinstance(seen, int):
            both = (seen, time) if seen <= time else (time, seen)
            self.seen[value] = Leaf(array("q", both), None)
        else:
            self.seen[value] = insert_element(seen, time, None)

    def _remove(self, time: int, value: Any) -> None:
        seen = self.seen[value]
        if isinstance(seen, int):
            del self.seen[value]
            return
        seen.remove(time, None)
        if len(seen) == 1:
            self.seen[value] = next(_times(seen))


def _intervals(times: Iterable[int], over: int) -> Iterator[tuple[int, int]]:
    """The union of [t, t + over) for the times, which are in order, as disjoint intervals."""
    begin = end = None
    for time in times:
        if begin is None or end is None:
            begin = time
        elif time > end:
            yield begin, end
            begin = time
        end = time + over
    if begin is not None and end is not None:
        yield begin, end


def _times(seen: int | TreeNode) -> Iterator[int]:
    return iter((seen,)) if isinstance(seen, int) else (time for time, _ in seen.elements())
