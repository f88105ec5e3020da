"""One series: its groups' records as far back as its longest window reaches."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

from tollkeeper.engine.windows.aggregates import RECOUNTS
from tollkeeper.engine.windows.contract import BEFORE_ALL, LATE, Key, SeriesPlan, Window
from tollkeeper.engine.windows.elements import Group, Grouped, values_in
from tollkeeper.engine.windows.run import Run
from tollkeeper.grammar.program import Value

BUCKETS = 128
"""A series' span is divided into so many buckets, by which groups come up for expiry."""
SWEEP = 8
"""How many groups a change looks at whose time has come: more than it can add."""

Held: TypeAlias = int | tuple[int, Any] | Run
"""A group of one element, as most are, without a run: its time, with its value if it has one."""

EMPTY = Run(valued=False)
"""A group whose elements were taken out, until it comes up for expiry."""


class Series:
    """Elements by group. Each group stands in exactly one bucket, of a time when it was in use.

    `over` (µs) is the longest window's length. What the series holds of places up to `up_to` comes
    from the journal.
    """

    def __init__(self, plan: SeriesPlan, over: int, up_to: int) -> None:
        self.plan = plan
        self.over = over
        self.up_to = up_to
        self.entries = 0
        self.horizon = BEFORE_ALL
        self._groups: dict[Group, Held] = {}
        self._width = (over + LATE) // BUCKETS
        self._buckets: dict[int, list[Group]] = {}
        self._passes_at = BEFORE_ALL
        self._due: deque[Group] = deque()

    @property
    def keys(self) -> int:
        """How many groups are held."""
        return len(self._groups)

    def change(self, time: int, old: Grouped | None, new: Grouped | None, newest: int) -> None:
        """Takes out what a record of event time `time` brought as known before, takes in the new.

        Nothing is read at an earlier time than `newest - LATE` (µs) from now on.
        """
        self.horizon = newest - LATE - self.over
        if self.horizon >= self._passes_at:
            self._pass_buckets()
        if self._due:
            self._sweep()
        if time <= self.horizon:
            return
        brought = () if new is None else values_in(self.plan, new.state)
        if old is not None:
            taken = values_in(self.plan, old.state)
            if new is not None and old.group == new.group and taken == brought:
                return
            for value in taken:
                self._remove(old.group, time, value)
        if new is not None:
            for value in brought:
                self._insert(new.group, time, value)

    def read(self, window: Window, key: Key, at: int) -> Value | None:
        """The window's aggregate over a group as of event time `at` (µs)."""
        assert window.over is not None
        held = self._groups.get(key[0] if len(key) == 1 else key)
        if isinstance(held, Run):
            if held is not EMPTY:
                return held.read(window, at)
            held = None
        time, value = held if isinstance(held, tuple) else (held, True)
        inside = time is not None and at - window.over < time <= at
        return RECOUNTS[window.function]((value,) if inside else (), window.type)

    def _insert(self, group: Group, time: int, value: Any) -> None:
        self.entries += 1
        held = self._groups.get(group)
        if held is None:
            self._groups[group] = (time, value) if self.plan.valued else time
            self._buckets.setdefault(time // self._width, []).append(group)
        elif held is EMPTY:
            self._groups[group] = (time, value) if self.plan.valued else time
        elif isinstance(held, Run):
            held.insert(time, value)
            if held.times[len(held.times) // 2] <= self.horizon:
                self.entries -= held.trim(self.horizon)
        else:
            run = Run(self.plan.valued)
            run.insert(*(held if isinstance(held, tuple) else (held, True)))
            run.insert(time, value)
            self._groups[group] = run

    def _remove(self, group: Group, time: int, value: Any) -> None:
        held = self._groups.get(group)
        if isinstance(held, Run):
            self.entries -= held.remove(time, value)
        elif held is not None and held == ((time, value) if self.plan.valued else time):
            self._groups[group] = EMPTY
            self.entries -= 1

    def _pass_buckets(self) -> None:
        edge = self.horizon // self._width
        self._passes_at = (edge + 1) * self._width
        for passed in [bucket for bucket in self._buckets if bucket < edge]:
            self._due.extend(self._buckets.pop(passed))

    def _sweep(self) -> None:
        """Looks at a few groups of the buckets that have passed: what is over is dropped."""
        for _ in range(min(SWEEP, len(self._due))):
            group = self._due.popleft()
            held = self._groups[group]
            latest = self._shrink(group, held)
            if latest is None:
                del self._groups[group]
            else:
                self._buckets.setdefault(latest // self._width, []).append(group)

    def _shrink(self, group: Group, held: Held) -> int | None:
        """The time of the group's last element that is not over, if there is one."""
        if isinstance(held, Run):
            self.entries -= held.trim(self.horizon)
            if len(held) == 1:
                self._groups[group] = (
                    (held.times[0], held.values[0]) if held.values else held.times[0]
                )
            return held.times[-1] if held else None
        time = held[0] if isinstance(held, tuple) else held
        if time > self.horizon:
            return time
        self.entries -= 1
        return None
