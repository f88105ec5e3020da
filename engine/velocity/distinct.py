"""How many different values a busy group has in a window, wherever in time the window ends.

A value is within the windows that end in [t, t + over) for each time `t` that it was seen at. What
all its times cover together are a few stretches, so the answer for a window that ends at `t` is how
many stretches have begun by then less how many have ended. One time more, or one less, changes at
most one stretch: the one between the value's times before and after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from tollkeeper.engine.velocity.contract import BEFORE_ALL
from tollkeeper.engine.velocity.tree import Leaf, TreeNode, build_tree, insert_element


class Coverage:
    """When the stretches of all values begin and end (µs), for windows of the length `over` (µs).

    Of times up to `folded` only the sum is kept, as `base`: nothing is read there any more.
    """

    __slots__ = ("base", "begins", "ends", "folded", "over")

    def __init__(self, over: int, seen: Iterable[Iterable[int]]) -> None:
        begins, ends = [], []
        for begin, end in (each for times in seen for each in _stretches(times, over)):
            begins.append(begin)
            ends.append(end)
        self.over = over
        self.begins = build_tree(array("q", sorted(begins)), None)
        self.ends = build_tree(array("q", sorted(ends)), None)
        self.folded = BEFORE_ALL
        self.base = 0

    def change(self, time: int, before: int | None, after: int | None, by: int) -> None:
        """A value is seen at `time` once more or (`by` -1) no longer.

        `before` and `after` are its times next to it.
        """
        begin = time if before is None else max(time, before + self.over)
        end = time + self.over if after is None else min(time + self.over, after)
        if begin < end:
            self._mark(begin, by)
            self._mark(end, -by)

    def count(self, at: int) -> int:
        """How many values the window that ends at `at` (µs) has."""
        ended = self.ends.rank(at) if self.ends.first <= at else 0
        return self.base + self.begins.rank(at) - ended

    def fold(self, up_to: int) -> None:
        """Gives back what is only needed for windows that end by `up_to` (µs)."""
        if up_to > self.folded:
            self.folded = up_to
            self.base += self.begins.drop(up_to) - self.ends.drop(up_to)

    def _mark(self, time: int, by: int) -> None:
        if time <= self.folded:
            self.base += by
        # A stretch that ends where another one begins is one with it.
        elif by > 0:
            if not self.ends.remove(time, None):
                self.begins = insert_element(self.begins, time, None)
        elif not self.begins.remove(time, None):
            self.ends = insert_element(self.ends, time, None)


class Distinct:
    """The times (µs) at which each value of a group was seen, a bare number where it is one.

    `coverages` are by the length of the windows (µs) that were asked for.
    """

    __slots__ = ("coverages", "seen")

    def __init__(self, elements: Iterable[tuple[int, Any]]) -> None:
        self.coverages: dict[int, Coverage] = {}
        self.seen: dict[Any, int | TreeNode] = {}
        for time, value in elements:
            self._add(time, value)

    def count(self, over: int, at: int) -> int:
        """How many values the window (at - over, at] has."""
        return self.covered(over).count(at)

    def covered(self, over: int) -> Coverage:
        """What answers for windows of a length (µs); made when first asked for."""
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
        """Takes out what was inserted."""
        self._remove(time, value)
        before, after = self._neighbours(time, value)
        for coverage in self.coverages.values():
            coverage.change(time, before, after, -1)

    def trim(self, gone: Leaf) -> None:
        """Forgets elements that no window reaches back to any more, the earliest of all."""
        for coverage in self.coverages.values():
            coverage.fold(gone.times[-1] + coverage.over)
        for time, value in zip(gone.times, gone.values or (), strict=True):
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


def _stretches(times: Iterable[int], over: int) -> Iterator[tuple[int, int]]:
    """What windows of the length `over` that end at or after each of the times cover together."""
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
