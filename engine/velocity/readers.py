"""How one window is read: a function of a group and a time, made once for many reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, TypeAlias

from tollkeeper.engine.velocity.aggregates import recounting
from tollkeeper.engine.velocity.contract import Window
from tollkeeper.engine.velocity.elements import Group
from tollkeeper.engine.velocity.run import Run
from tollkeeper.engine.velocity.series import Series
from tollkeeper.grammar.program import Value

Reader: TypeAlias = Callable[[Group, int], Value | None]
"""The aggregate over a group as of an event time (µs)."""


def reader(series: Series, window: Window) -> Reader:
    """A reader of a series that reaches as far back as the window."""
    assert window.over is not None
    if window.function == "count":
        return _count_reader(series, window.over)
    return _value_reader(series, window, window.over)


def nothing(_group: Group, _at: int) -> None:
    """The reader of a series that was given up."""


def _count_reader(series: Series, over: int) -> Reader:
    find = series.groups.get

    def read(group: Group, at: int) -> int:
        held: Any = find(group)
        if isinstance(held, Run):
            times = held.times
            if not times:
                return 0 if held.long is None else held.long.count(over, at)
            start = at - over
            low = 0 if times[0] > start else bisect_right(times, start)
            return (len(times) if times[-1] <= at else bisect_right(times, at, low)) - low
        if isinstance(held, tuple):
            held = held[0]
        return 1 if held is not None and at - over < held <= at else 0

    return read


def _value_reader(series: Series, window: Window, over: int) -> Reader:
    find, recount = series.groups.get, recounting(window.function, window.type)
    of_none = recount(())

    def read(group: Group, at: int) -> Value | None:
        held = find(group)
        if isinstance(held, Run):
            times, values = held.times, held.values
            if values and times[0] > at - over and times[-1] <= at:
                return recount(values)
            return held.read(window, at) if times or held.long is not None else of_none
        if isinstance(held, tuple):
            return recount(held[1:]) if at - over < held[0] <= at else of_none
        return of_none

    return read
