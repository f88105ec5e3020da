"""One group's elements in order of event time.

A read of few values recounts them. Many values are moved to a tree when they are first read, or when
elements arrive far out of order: the cost of an insertion or read is then logarithmic in the number
of elements, in whatever order they arrive and wherever a window ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from tollkeeper.engine.velocity.aggregates import RECOUNTS, aggregate_value, fold_values
from tollkeeper.engine.velocity.contract import Window
from tollkeeper.engine.velocity.distinct import Distinct
from tollkeeper.engine.velocity.tree import TreeNode, build_tree, insert_element
from tollkeeper.grammar.program import Value

FEW = 256
"""The most elements that a read recounts; in C, also the most elements of a block."""
FAR_BACK = 32_768
"""An element further than this from the end is only inserted or removed in a tree."""
PUT_EXPIRES = 4
"""The most expired elements that adding one element removes from a long run."""
SWEEP_EXPIRES = 500
"""The most expired elements that are removed from a long run when its group comes up for expiry."""


class Run:
    """Event times (µs) in order, and a value for each.

    `values` is None for elements without values, which are only counted. Once `long` holds the
    elements, `times` and `values` are empty.
    """

    __slots__ = ("long", "times", "values")

    def __init__(self, valued: bool) -> None:
        self.times = array("q")
        self.values: list[Any] | None = [] if valued else None
        self.long: LongRun | None = None

    def __len__(self) -> int:
        return len(self.times) if self.long is None else self.long.size

    def elements(self) -> Iterator[tuple[int, Any]]:
        """The times and values, in order."""
        if self.long is not None:
            return self.long.elements()
        return zip(self.times, repeat(True) if self.values is None else self.values, strict=False)

    @property
    def latest(self) -> int:
        """The latest time (µs); of a run that is not empty."""
        return self.times[-1] if self.long is None else self.long.latest

    def insert(self, time: int, value: Any) -> None:
        if self.long is not None:
            self.long.insert(time, value)
            return
        times = self.times
        at = len(times) if not times or time >= times[-1] else bisect_right(times, time)
        if len(times) - at > FAR_BACK:
            self.lengthen().insert(time, value)
            return
        times.insert(at, time)
        if self.values is not None:
            self.values.insert(at, value)

    def lengthen(self, lengths: Sequence[int] = ()) -> LongRun:
        """Move the elements to a tree; `lengths` (µs) are those of `distinct` windows."""
        self.long = LongRun(self.times, self.values, lengths)
        self.times = array("q")
        self.values = None if self.values is None else []
        return self.long

    def remove(self, time: int, value: Any) -> bool:
        """Remove one element of that time and value; False when there is none."""
        if self.long is not None:
            return self.long.remove(time, value)
        times, values = self.times, self.values
        start = bisect_left(times, time)
        end = bisect_right(times, time, start)
        # Of values, also where only the first of many of one time is far back: each may be looked at.
        if len(times) - (end if values is None else start) > FAR_BACK:
            return self.lengthen().remove(time, value)
        if values is None:
            at = end - 1
        else:
            at = next((i for i in range(end - 1, start - 1, -1) if values[i] == value), -1)
        if at < start:
            return False
        del times[at]
        if values is not None:
            del values[at]
        return True

    def trim(self, horizon: int) -> int:
        """Remove the elements not later than `horizon` (µs); returns how many."""
        if self.long is not None:
            return self.long.trim(horizon, len(self))
        expired = bisect_right(self.times, horizon)
        del self.times[:expired]
        if self.values is not None:
            del self.values[:expired]
        return expired

    def read(self, window: Window, at: int) -> Value | None:
        """The window's aggregate as of event time `at` (µs)."""
        if self.long is not None:
            return self.long.read(window, at)
        over = window.over
        assert over is not None
        times, values, function = self.times, self.values, window.function
        low = bisect_right(times, at - over)
        high = len(times) if times and times[-1] <= at else bisect_right(times, at, low)
        if function == "count" or values is None:
            return high - low
        return RECOUNTS[function](values[low:high], window.type)


class LongRun:
    """A run of many elements, in a tree; `distinct` is None until a `distinct` window is read."""

    __slots__ = ("distinct", "latest", "size", "tree")

    def __init__(
        self, times: array[int], values: list[Any] | None, lengths: Sequence[int] = ()
    ) -> None:
        self.size = len(times)
        self.latest = times[-1]
        self.tree: TreeNode = build_tree(times, values)
        self.distinct: Distinct | None = None
        if lengths:
            self.index(lengths)

    def insert(self, time: int, value: Any) -> None:
        self.tree = insert_element(self.tree, time, value)
        self.size += 1
        self.latest = max(self.latest, time)
        if self.distinct is not None:
            self.distinct.insert(time, value)

    def remove(self, time: int, value: Any) -> bool:
        """Remove one element of that time and value; False when there is none."""
        removed = self.tree.remove(time, value)
        self.size -= removed
        if removed and self.distinct is not None:
            self.distinct.remove(time, value)
        return removed

    def put(self, time: int, value: Any, horizon: int) -> int:
        """Insert an element and remove some not later than `horizon` (µs); returns how many."""
        self.insert(time, value)
        return self.trim(horizon, PUT_EXPIRES)

    def shrink(self, horizon: int) -> int:
        """Remove some of the elements not later than `horizon` (µs); returns how many."""
        return self.trim(horizon, SWEEP_EXPIRES)

    def elements(self) -> Iterator[tuple[int, Any]]:
        """The times and values, in order."""
        return self.tree.elements()

    def trim(self, horizon: int, most: int) -> int:
        """Remove at most `most` of the elements not later than `horizon` (µs); returns how many."""
        before = self.size
        if self.distinct is None and most >= before:
            self.size -= self.tree.drop(horizon)
            return before - self.size
        while most > 0 and len(expired := self.tree.take_first(horizon, most)):
            self.size -= len(expired)
            most -= len(expired)
            if self.distinct is not None:
                self.distinct.remove_expired(expired)
        return before - self.size

    def index(self, lengths: Iterable[int]) -> None:
        """Prepare for reads of `distinct` windows of these lengths (µs)."""
        if self.distinct is None:
            self.distinct = Distinct(self.elements())
        for over in lengths:
            self.distinct.coverage(over)

    def count(self, over: int, at: int) -> int:
        """The number of elements in (at - over, at]."""
        until = self.size if at >= self.latest else self.tree.rank(at)
        since = at - over
        return until - self.tree.rank(since) if since >= self.tree.first else until

    def read(self, window: Window, at: int) -> Value | None:
        """The window's aggregate as of event time `at` (µs)."""
        over, function = window.over, window.function
        assert over is not None
        if function == "distinct":
            self.index((over,))
            assert self.distinct is not None
            return self.distinct.count(over, at)
        if function == "count":
            return self.count(over, at)
        parts: list[Any] = []
        fold = fold_values(function, window.type)
        self.tree.collect(at - over, at, fold, parts)
        if not parts:
            return RECOUNTS[function]((), window.type)
        whole = fold.of_parts(parts)
        if function not in ("sum", "avg"):
            value: Value | None = whole
            return value
        count = self.count(over, at) if function == "avg" else 0
        return aggregate_value(function, whole, count, window.type)


def lengthened(times: bytes, values: list[Any] | None, lengths: Sequence[int]) -> LongRun:
    """A long run of elements in order, for `_groups.c`; the times (µs) are packed 64-bit integers."""
    return LongRun(array("q", times), values, lengths)
