"""One series' moments in the file, behind what was asked for lately and what is not written yet.

While a series is filled, changes are gathered as they come, and nobody reads it. Once it is live a
change gives the count that a moment has from then on, so that it does not matter whether a read
finds it written already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import chain
from typing import TypeAlias

from tollkeeper.engine.velocity.contract import BEFORE_ALL, Group
from tollkeeper.engine.velocity.first_seen_file import CountChange, MomentsFile, hashed

CACHED = 65_536
"""Of how many groups, of all accounts, the first and the last moment are held at least."""

Bounds: TypeAlias = tuple[int, int] | None
"""The first and the last moment of a group, None for one that was never seen."""
Counts: TypeAlias = dict[Group, dict[int, int]]
"""How many moments of each time (µs) a group has."""


class Unknown(Enum):
    """Of a group whose bounds are not held."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN


class Lately:
    """The bounds of groups that were asked for lately: at most twice `CACHED`.

    What was not asked for since as many others were is forgotten with them.
    """

    def __init__(self) -> None:
        self._new: dict[tuple[int, Group], Bounds] = {}
        self._old: dict[tuple[int, Group], Bounds] = {}

    def find(self, of: tuple[int, Group]) -> Bounds | Unknown:
        found = self._new.get(of, UNKNOWN)
        if found is UNKNOWN:
            found = self._old.get(of, UNKNOWN)
            if found is not UNKNOWN:
                self.hold(of, found)
        return found

    def hold(self, of: tuple[int, Group], bounds: Bounds) -> None:
        self._new[of] = bounds
        if len(self._new) >= CACHED:
            self._new, self._old = {}, self._new

    def forget(self, of: tuple[int, Group]) -> None:
        self._new.pop(of, None)
        self._old.pop(of, None)


class StoredMoments:
    """The series `number` of the file; `written_place` is the place up to which it is whole there."""

    def __init__(
        self, file: MomentsFile, lately: Lately, number: int, written_place: int | None
    ) -> None:
        self.number = number
        self.written_place = written_place
        self.is_given_up = False
        self._file = file
        self._lately = lately
        self._place = 0
        # None once it is live.
        self._filled: list[CountChange] | None = []
        self._changed: Counts = {}
        self._writing: Counts = {}
        self._writing_place = BEFORE_ALL
        self._was_undone = False

    def reach(self, place: int) -> None:
        if place > self._place:
            self._place = place
        elif place <= self._writing_place:
            # What is on its way to the file has been withdrawn.
            self._was_undone = True

    def add(self, group: Group, time: int) -> None:
        if self._filled is not None:
            self._filled.append((group, time, 1))
            return
        bounds = self._bounds(group)
        if bounds is None:
            self._set(group, time, 1, (time, time))
            return
        first, last = bounds
        inside = first <= time <= last
        count = self._count(group, time) if inside else 0
        self._set(group, time, count + 1, (min(first, time), max(last, time)))

    def remove(self, group: Group, time: int) -> None:
        if self._filled is not None:
            self._filled.append((group, time, -1))
            return
        bounds = self._bounds(group)
        if bounds is None or not bounds[0] <= time <= bounds[1]:
            return
        count = self._count(group, time)
        if count:
            self._set(group, time, count - 1, bounds)
            if count == 1 and time in bounds:
                self._lately.forget((self.number, group))

    def first(self, group: Group) -> int | None:
        bounds = self._bounds(group)
        return None if bounds is None else bounds[0]

    def latest(self, group: Group, at: int) -> int | None:
        bounds = self._bounds(group)
        if bounds is None or bounds[0] > at:
            return None
        return bounds[1] if bounds[1] <= at else self._last(group, at)

    def discard(self) -> None:
        self.is_given_up = True

    @property
    def filling(self) -> int:
        """How many filled moments wait to be written."""
        return len(self._filled or ())

    def take_filled(self) -> list[CountChange]:
        """What is to be added to the file, where the series is not whole from then on."""
        taken, self._filled = self._filled or [], []
        self.written_place = None
        return taken

    def go_live(self, place: int) -> None:
        """It holds all that places up to `place` brought, and is read from now on."""
        filled, self._filled = self._filled or [], None
        self._place = max(self._place, place)
        for group, time, count in filled:
            (self.add if count > 0 else self.remove)(group, time)

    def take_changes(self) -> bool:
        """Holds what changed so far apart, to be written; whether there is anything."""
        if self._filled is not None or (not self._changed and self._place == self.written_place):
            return False
        self._writing, self._changed = self._changed, {}
        self._writing_place = self._place
        self._was_undone = False
        return True

    @property
    def is_lasting(self) -> bool:
        """Whether nothing of what was taken has been withdrawn since."""
        return not self._was_undone

    def taken(self) -> tuple[list[CountChange], int]:
        """What was taken, with the last place that brought some of it."""
        changes = [
            (group, time, count)
            for group, counts in self._writing.items()
            for time, count in counts.items()
        ]
        return changes, self._writing_place

    def end_writing(self, *, was_written: bool, is_whole: bool) -> None:
        """What was taken is in the file, or changed again; `is_whole` tells whether the series is
        whole in the file with it."""
        if was_written:
            self.written_place = self._writing_place if is_whole else None
        else:
            for group, counts in self._writing.items():
                self._changed[group] = counts | self._changed.get(group, {})
        self._writing, self._writing_place = {}, BEFORE_ALL

    def _set(self, group: Group, time: int, count: int, bounds: Bounds) -> None:
        self._changed.setdefault(group, {})[time] = count
        self._lately.hold((self.number, group), bounds)

    def _count(self, group: Group, time: int) -> int:
        for counts in (self._changed.get(group), self._writing.get(group)):
            if counts is not None and time in counts:
                return counts[time]
        return self._file.count(self.number, hashed(group), time)

    def _bounds(self, group: Group) -> Bounds:
        of = (self.number, group)
        bounds = self._lately.find(of)
        if bounds is UNKNOWN:
            bounds = self._found_bounds(group)
            self._lately.hold(of, bounds)
        return bounds

    def _found_bounds(self, group: Group) -> Bounds:
        unwritten = self._unwritten(group)
        if not unwritten:
            return self._file.bounds(self.number, hashed(group))
        there = [time for time, count in unwritten.items() if count]
        kept = self._file.upwards(self.number, hashed(group))
        first = min(chain(_remaining(kept, unwritten), there), default=None)
        if first is None:
            return None
        last = self._last(group, -BEFORE_ALL)
        assert last is not None
        return first, last

    def _last(self, group: Group, at: int) -> int | None:
        """The last moment not after `at` (µs)."""
        unwritten = self._unwritten(group)
        there = [time for time, count in unwritten.items() if count and time <= at]
        kept = self._file.downwards(self.number, hashed(group), at)
        return max(chain(_remaining(kept, unwritten), there), default=None)

    def _unwritten(self, group: Group) -> Mapping[int, int]:
        return self._writing.get(group, {}) | self._changed.get(group, {})


def _remaining(kept: Iterator[int], unwritten: Mapping[int, int]) -> Iterator[int]:
    """The first of the moments that no unwritten change takes out."""
    for time in kept:
        if unwritten.get(time, 1):
            yield time
            return
