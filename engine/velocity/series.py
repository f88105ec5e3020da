"""One series: its groups' records as far back as its longest window reaches."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

from tollkeeper.engine.velocity.contract import BEFORE_ALL, LATE, SeriesPlan
from tollkeeper.engine.velocity.elements import Group
from tollkeeper.engine.velocity.run import FEW, LongRun, Run

BUCKETS = 128
"""A series' span is divided into so many buckets, by which groups come up for expiry."""
SWEEP = 8
"""How many groups that came up for expiry are looked at for each record: a record adds fewer."""
TRIMMED = 4
"""How many elements beyond the horizon each element more takes out of a long run, at most."""
SHRUNK = 500
"""How many of them are taken out of a long run when it comes up for expiry, at most."""

Held: TypeAlias = int | tuple[int, Any] | Run
"""A group of one element, as most are, without a run: its time, with its value if it has one."""

EMPTY = Run(valued=False)
"""A group whose elements were taken out, until it comes up for expiry."""


class Clock:
    """The latest arrival (µs) that some series have seen.

    Nothing is read at an earlier time than `LATE` before it from then on.
    """

    __slots__ = ("newest",)

    def __init__(self) -> None:
        self.newest = BEFORE_ALL


class Series:
    """Elements by group. Each group stands in exactly one bucket, of a time when it was in use.

    `over` (µs) is the longest window's length. What the series holds of places up to `up_to` comes
    from the journal.
    """

    def __init__(self, plan: SeriesPlan, over: int, up_to: int, clock: Clock) -> None:
        self.plan = plan
        self.over = over
        self.up_to = up_to
        self.clock = clock
        self.entries = 0
        self.groups: dict[Group, Held] = {}
        self._valued = plan.valued
        self._reach = LATE + over
        self._width = (over + LATE) // BUCKETS
        self._buckets: dict[int, list[Group]] = {}
        # The bucket that was used last, and the times that belong to it.
        self._bucket: list[Group] = []
        self._from = self._to = BEFORE_ALL
        self._due: deque[Group] = deque()

    @property
    def keys(self) -> int:
        """How many groups are held."""
        return len(self.groups)

    @property
    def horizon(self) -> int:
        """No window reaches back to this time (µs) any more."""
        return self.clock.newest - self._reach

    def shorten(self, over: int) -> None:
        """Its longest window is `over` (µs) long from now on, where it was longer."""
        self.over = min(self.over, over)
        self._reach = LATE + self.over

    def put(self, time: int, group: Group, value: Any) -> None:
        """Takes in one element of event time `time` (µs)."""
        self.entries += 1
        held = self.groups.get(group)
        if held is None:
            self.groups[group] = (time, value) if self._valued else time
            if not self._from <= time < self._to:
                self._turn_to(time)
            self._bucket.append(group)
        elif not isinstance(held, Run):
            run = self.groups[group] = Run(self._valued)
            run.insert(*(held if isinstance(held, tuple) else (held, True)))
            run.insert(time, value)
        elif held is EMPTY:
            self.groups[group] = (time, value) if self._valued else time
        elif held.long is not None:
            self._put_long(held.long, time, value)
        else:
            times = held.times
            if times and time < times[-1]:
                held.insert(time, value)
            else:
                # Written out here, as nearly all come in order.
                times.append(time)
                if held.values is not None:
                    held.values.append(value)
                if len(times) > FEW:
                    held.lengthen()
            if times and times[len(times) >> 1] <= self.clock.newest - self._reach:
                self.entries -= held.trim(self.horizon)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Takes out one element, if it is there."""
        held = self.groups.get(group)
        if isinstance(held, Run):
            self.entries -= held.remove(time, value)
        elif held is not None and held == ((time, value) if self._valued else time):
            self.groups[group] = EMPTY
            self.entries -= 1

    def pass_buckets(self) -> int:
        """Marks the groups whose time has come; the arrival (µs) that brings the next ones."""
        edge = self.horizon // self._width
        for passed in [bucket for bucket in self._buckets if bucket < edge]:
            self._due.extend(self._buckets.pop(passed))
        self._bucket, self._from, self._to = [], BEFORE_ALL, BEFORE_ALL
        return (edge + 1) * self._width + self._reach

    def sweep(self) -> bool:
        """Looks at a few of the groups whose time has come, and drops what is over.

        Whether some are left.
        """
        for _ in range(min(SWEEP, len(self._due))):
            group = self._due.popleft()
            latest = self._shrink(group, self.groups[group])
            if latest is None:
                del self.groups[group]
            else:
                self._buckets.setdefault(latest // self._width, []).append(group)
        return bool(self._due)

    def _turn_to(self, time: int) -> None:
        number = time // self._width
        self._bucket = self._buckets.setdefault(number, [])
        self._from = number * self._width
        self._to = self._from + self._width

    def _put_long(self, run: LongRun, time: int, value: Any) -> None:
        if run.distinct is None and self.plan.distinct:
            run.index(self.plan.distinct)
        run.insert(time, value)
        self.entries -= run.trim(self.horizon, TRIMMED)

    def _shrink(self, group: Group, held: Held) -> int | None:
        """The time of the group's last element that is not over, if there is one."""
        horizon = self.horizon
        if isinstance(held, Run):
            if held and held.latest <= horizon:
                self.entries -= len(held)
                return None
            if held.long is not None:
                self.entries -= held.long.trim(horizon, SHRUNK)
                return held.latest
            self.entries -= held.trim(horizon)
            if len(held) == 1:
                self.groups[group] = (
                    (held.times[0], held.values[0]) if held.values else held.times[0]
                )
            return held.latest if held else None
        time = held[0] if isinstance(held, tuple) else held
        if time > horizon:
            return time
        self.entries -= 1
        return None
