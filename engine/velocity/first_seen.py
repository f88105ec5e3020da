"""The event times at which the groups of one series were seen.

Every moment is kept, not only the first and the last: an update may take a record out of its
group, and then the one after it is the first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Protocol

from tollkeeper.engine.velocity.contract import Group


class Moments(Protocol):
    """The event times (µs) at which each group was seen."""

    def reach(self, place: int) -> None:
        """What comes next is the change that `place` of the sequence brings."""
        ...

    def add(self, group: Group, time: int) -> None: ...

    def remove(self, group: Group, time: int) -> None:
        """Takes out one such moment, if it is there."""
        ...

    def first(self, group: Group) -> int | None: ...

    def latest(self, group: Group, at: int) -> int | None:
        """The latest moment not after `at` (µs)."""
        ...

    def discard(self) -> None:
        """Gives back what the series holds."""
        ...


class MemoryMoments:
    """A group seen once, as most are, is held as a bare number."""

    def __init__(self) -> None:
        self._moments: dict[Group, int | list[int]] = {}

    def reach(self, place: int) -> None:
        """What is gone with the process needs no place."""

    def add(self, group: Group, time: int) -> None:
        held = self._moments.get(group)
        if held is None:
            self._moments[group] = time
        elif isinstance(held, int):
            self._moments[group] = [min(held, time), max(held, time)]
        else:
            insort(held, time)

    def remove(self, group: Group, time: int) -> None:
        held = self._moments.get(group)
        if isinstance(held, list):
            at = bisect_left(held, time)
            if at < len(held) and held[at] == time:
                del held[at]
            if len(held) == 1:
                self._moments[group] = held[0]
        elif held == time:
            del self._moments[group]

    def first(self, group: Group) -> int | None:
        held = self._moments.get(group)
        return held[0] if isinstance(held, list) else held

    def latest(self, group: Group, at: int) -> int | None:
        held = self._moments.get(group)
        if isinstance(held, list):
            before = bisect_right(held, at)
            return held[before - 1] if before else None
        return held if held is not None and held <= at else None

    def discard(self) -> None:
        self._moments.clear()
