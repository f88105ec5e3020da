"""One group's records in order of event time, and tallies that move over them.

A read of few values recounts them. Over many, a window keeps cursors: each a range of the run and
the tally of it, which moves to where the next read looks. Going forward every value enters and
leaves once, and slightly late records move a cursor back and forth a little. There are two, since
a merchant may send yesterday's payments beside today's; for a read far behind both, the values are
recounted from a slice, and the cursors stay where they are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import chain
from typing import Any

from tollkeeper.engine.velocity.aggregates import KINDS, RECOUNTS, Tally, Values, tally
from tollkeeper.engine.velocity.contract import Window
from tollkeeper.grammar.program import Value

FEW = 32
"""Up to so many values are recounted rather than tallied."""
NEAR = 64
"""Up to so many steps a cursor goes in any direction."""
CURSORS = 2
"""How many cursors a window keeps."""
STEP = 8
"""About how many values are recounted in the time of one step."""


class Cursor:
    """`tally` holds the values of `run[low:high]`."""

    __slots__ = ("high", "low", "tally")

    def __init__(self, low: int, high: int, tally: Tally) -> None:
        self.low = low
        self.high = high
        self.tally = tally

    def steps(self, low: int, high: int) -> int:
        """How many values enter and leave on the way to `run[low:high]`."""
        return abs(low - self.low) + abs(high - self.high)

    def move(self, low: int, high: int, values: Values) -> None:
        add, remove = self.tally.add, self.tally.remove
        if high != self.high:
            for value in values[self.high : high]:
                add(value)
        if low < self.low:
            for value in values[low : self.low]:
                add(value)
        elif low > self.low:
            for value in values[self.low : low]:
                remove(value)
        if high < self.high:
            for value in values[high : self.high]:
                remove(value)
        self.low, self.high = low, high


class Run:
    """Event times (µs) in order, the last arrived last among equals, and a value for each.

    `values` is None where elements have none, and are only counted. Equal values at one time are
    interchangeable, so nothing else of a record is kept.
    """

    __slots__ = ("cursors", "times", "values")

    def __init__(self, valued: bool) -> None:
        self.times = array("q")
        self.values: list[Any] | None = [] if valued else None
        # By the window's length and the kind of its tally.
        self.cursors: dict[tuple[int, str], list[Cursor]] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def insert(self, time: int, value: Any) -> None:
        times = self.times
        if not times or time >= times[-1]:
            times.append(time)
            if self.values is not None:
                self.values.append(value)
            return
        at = bisect_right(times, time)
        times.insert(at, time)
        if self.values is not None:
            self.values.insert(at, value)
        for cursor in self._all_cursors():
            if at <= cursor.low:
                cursor.low += 1
                cursor.high += 1
            elif at < cursor.high:
                cursor.high += 1
                cursor.tally.add(value)

    def remove(self, time: int, value: Any) -> bool:
        """Takes out one element of that time and value; false when there is none."""
        times, values = self.times, self.values
        start = bisect_left(times, time)
        end = bisect_right(times, time, start)
        if values is None:
            at = end - 1
        else:
            at = next((i for i in range(end - 1, start - 1, -1) if values[i] == value), -1)
        if at < start:
            return False
        del times[at]
        if values is not None:
            del values[at]
        for cursor in self._all_cursors():
            if at < cursor.low:
                cursor.low -= 1
                cursor.high -= 1
            elif at < cursor.high:
                cursor.high -= 1
                cursor.tally.remove(value)
        return True

    def _all_cursors(self) -> Iterable[Cursor]:
        return () if self.cursors is None else chain.from_iterable(self.cursors.values())

    def trim(self, horizon: int) -> int:
        """Drops the elements not later than `horizon` (µs), and the cursors; how many went."""
        gone = bisect_right(self.times, horizon)
        self.cursors = None
        del self.times[:gone]
        if self.values is not None:
            del self.values[:gone]
        return gone

    def read(self, window: Window, at: int) -> Value | None:
        """The window's aggregate as of event time `at` (µs)."""
        over = window.over
        assert over is not None
        times, values, function = self.times, self.values, window.function
        low = bisect_right(times, at - over)
        high = len(times) if times and times[-1] <= at else bisect_right(times, at, low)
        if function == "count" or values is None:
            return high - low
        if high - low <= FEW:
            return RECOUNTS[function](values[low:high], window.type)
        if self.cursors is None:
            self.cursors = {}
        of = (over, KINDS[function])
        cursors = self.cursors.get(of)
        if cursors is None:
            cursors = self.cursors[of] = []
        for cursor in cursors:
            if abs(low - cursor.low) + abs(high - cursor.high) <= NEAR:
                cursor.move(low, high, values)
                return cursor.tally.answer(function)
        return _from_afar(cursors, window, low, high, values)


def _from_afar(
    cursors: list[Cursor], window: Window, low: int, high: int, values: Values
) -> Value | None:
    """The aggregate of `run[low:high]`, to which no cursor is near."""
    behind = [each for each in cursors if each.low <= low and each.high <= high]
    if not behind and len(cursors) == CURSORS:
        return RECOUNTS[window.function](values[low:high], window.type)
    last = max(behind, key=lambda cursor: cursor.high, default=None)
    kind = KINDS[window.function]
    if last is None:
        last = Cursor(low, high, tally(kind, values[low:high], window.type))
        cursors.append(last)
    elif last.steps(low, high) * STEP <= high - low:
        last.move(low, high, values)
    else:
        last.low, last.high = low, high
        last.tally = tally(kind, values[low:high], window.type)
    return last.tally.answer(window.function)
