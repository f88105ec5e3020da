"""`age`, `interval`, `since`, `first` and `streak`, by the times at which a series' groups were seen.

All times are kept, not only the first and the last: when an update removes a record from its group,
the next one becomes the first. A service keeps them in a file: what has changed is in memory until
`first_seen_store.py` has written it, in the background.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from enum import Enum
from typing import Any, Protocol, TypeAlias

from tollkeeper.engine.velocity.contract import BEFORE_ALL, Group, SeriesPlan, Window
from tollkeeper.engine.velocity.first_seen_file import CountChange, SeenTimesFile, hash_group
from tollkeeper.grammar.checker.aggregates import MAX_STREAK
from tollkeeper.grammar.program import AggregateFunction

CACHED = 65_536
"""How many groups, of all accounts, have their first and last times cached: up to twice as many."""

Bounds: TypeAlias = tuple[int, int] | None
"""The first and the last time of a group, None for one that was never seen."""
Counts: TypeAlias = dict[Group, dict[int, int]]
"""How often a group was seen at each time (µs)."""


class SeenTimes(Protocol):
    """The event times (µs) at which each group was seen."""

    def reach(self, sequence: int) -> None:
        """Set the sequence number of the changes that follow."""
        ...

    def add(self, group: Group, time: int) -> None: ...

    def remove(self, group: Group, time: int) -> None:
        """Remove one such time, if it is there."""
        ...

    def first(self, group: Group) -> int | None: ...

    def latest(self, group: Group, at: int) -> int | None:
        """The latest time not after `at` (µs)."""
        ...

    def count_after(self, group: Group, after: int, most: int) -> int:
        """The number of times later than `after` (µs), counted up to `most`."""
        ...

    def discard(self) -> None:
        """Drop all times of the series."""
        ...


class MemorySeenTimes:
    """`SeenTimes` in memory; the time of a group seen once, as most are, is held as a number."""

    def __init__(self) -> None:
        self._seen_times: dict[Group, int | list[int]] = {}

    def reach(self, sequence: int) -> None:
        """Ignored: nothing is stored."""

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


class Unknown(Enum):
    """The result for a group whose bounds are not cached."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN


class RecentBounds:
    """A cache of the bounds of recently read groups, by series number and group.

    Whenever `CACHED` groups were read, all that were not among them are dropped.
    """

    def __init__(self) -> None:
        self._new: dict[tuple[int, Group], Bounds] = {}
        self._old: dict[tuple[int, Group], Bounds] = {}

    def find(self, name: tuple[int, Group]) -> Bounds | Unknown:
        bounds = self._new.get(name, UNKNOWN)
        if bounds is UNKNOWN:
            bounds = self._old.get(name, UNKNOWN)
            if bounds is not UNKNOWN:
                self.hold(name, bounds)
        return bounds

    def hold(self, name: tuple[int, Group], bounds: Bounds) -> None:
        self._new[name] = bounds
        if len(self._new) >= CACHED:
            self._new, self._old = {}, self._new

    def forget(self, name: tuple[int, Group]) -> None:
        self._new.pop(name, None)
        self._old.pop(name, None)


class StoredSeenTimes:
    """`SeenTimes` of the series `number` in the file, first being filled, then followed or live.

    While it is filled or followed, it can't be read, and its changes are collected as differences of
    counts, which need no look at the file. Once it is live, a change sets the new count of a time.
    `written_up_to` is the sequence number up to which the file has the whole series, None if it
    has not.
    """

    def __init__(
        self, file: SeenTimesFile, recent: RecentBounds, number: int, written_up_to: int | None
    ) -> None:
        self.number = number
        self.written_up_to = written_up_to
        self.is_given_up = False
        self._file = file
        self._recent = recent
        self._sequence = 0
        # Collected changes of counts, None once the series is live, and those being written.
        self._collected: list[CountChange] | None = []
        self._adding: list[CountChange] = []
        self.is_filled = False
        # New counts: those to be written, and those that are being written.
        self._changed: Counts = {}
        self._writing: Counts = {}
        # Of groups that were read among them: the times of both, in order.
        self._unwritten_times: dict[Group, list[int]] = {}
        self._writing_up_to = BEFORE_ALL
        self._was_undone = False

    def reach(self, sequence: int) -> None:
        if sequence > self._sequence:
            self._sequence = sequence
        elif sequence <= self._writing_up_to:
            # A change that is being written is withdrawn.
            self._was_undone = True

    def add(self, group: Group, time: int) -> None:
        if self._collected is not None:
            self._collected.append((group, time, 1))
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
        if self._collected is not None:
            self._collected.append((group, time, -1))
            return
        bounds = self._bounds(group)
        if bounds is None or not bounds[0] <= time <= bounds[1]:
            return
        count = self._count(group, time)
        if count:
            self._set(group, time, count - 1, bounds)
            if count == 1 and time in bounds:
                self._recent.forget((self.number, group))

    def first(self, group: Group) -> int | None:
        bounds = self._bounds(group)
        return None if bounds is None else bounds[0]

    def latest(self, group: Group, at: int) -> int | None:
        bounds = self._bounds(group)
        if bounds is None or bounds[0] > at:
            return None
        return bounds[1] if bounds[1] <= at else self._last(group, at)

    def count_after(self, group: Group, after: int, most: int) -> int:
        bounds = self._bounds(group)
        if bounds is None or bounds[1] <= after:
            return 0
        counted, unwritten = 0, self._times_in_order(group)
        for at in range(bisect_right(unwritten, after), len(unwritten)):
            if counted >= most:
                break
            counted += self._unwritten_count(group, unwritten[at], 0)
        for time, times in self._file.counts_after(self.number, hash_group(group), after):
            if counted >= most:
                break
            counted += times if self._unwritten_count(group, time, -1) < 0 else 0
        return min(counted, most)

    def discard(self) -> None:
        self.is_given_up = True

    @property
    def filling(self) -> int:
        """How many collected changes are held."""
        return len(self._collected or ())

    def take_filled(self) -> list[CountChange]:
        """Take the collected changes, to add them to the file, which then no longer has it whole."""
        taken, self._collected = self._collected or [], []
        self.written_up_to = None
        return taken

    def end_filling(self, sequence: int) -> None:
        """Begin to follow: the series has all changes up to this sequence number, and will get all later
        ones."""
        self._sequence = max(self._sequence, sequence)
        self.is_filled = True

    def go_live(self) -> None:
        """Make a series that is filled live: it can be read from now on."""
        collected, self._collected = self._collected or [], None
        for group, time, change in collected:
            (self.add if change > 0 else self.remove)(group, time)

    def take_changes(self) -> bool:
        """Begin to write what has changed so far; whether there is anything to write."""
        has_changed = bool(self._changed or self._collected)
        if not self.is_filled or not (has_changed or self._sequence != self.written_up_to):
            return False
        self._writing, self._changed = self._changed, {}
        if self._collected is not None:
            self._adding, self._collected = self._collected, []
        self._writing_up_to = self._sequence
        self._was_undone = False
        return True

    @property
    def is_writable(self) -> bool:
        """Whether none of the changes being written has been withdrawn since they were taken."""
        return not self._was_undone

    def changes_to_write(self) -> tuple[list[CountChange], list[CountChange], int]:
        """What is being written: counts to set, differences to add, and the sequence number that both
        bring the series to."""
        counts = [
            (group, time, count)
            for group, counts in self._writing.items()
            for time, count in counts.items()
        ]
        return counts, self._adding, self._writing_up_to

    def end_writing(self, *, was_written: bool, is_whole: bool) -> None:
        """End a write; changes that were not written will be again. `is_whole` says whether the file
        now has the series whole."""
        if was_written:
            self.written_up_to = self._writing_up_to if is_whole else None
        else:
            for group, counts in self._writing.items():
                self._changed[group] = counts | self._changed.get(group, {})
            if self._collected is not None:
                self._collected = self._adding + self._collected
        self._writing, self._adding, self._writing_up_to = {}, [], BEFORE_ALL
        self._unwritten_times.clear()

    def _set(self, group: Group, time: int, count: int, bounds: Bounds) -> None:
        times = self._unwritten_times.get(group)
        if times is not None and self._unwritten_count(group, time, -1) < 0:
            insort(times, time)
        self._changed.setdefault(group, {})[time] = count
        self._recent.hold((self.number, group), bounds)

    def _count(self, group: Group, time: int) -> int:
        count = self._unwritten_count(group, time, -1)
        return self._file.count(self.number, hash_group(group), time) if count < 0 else count

    def _bounds(self, group: Group) -> Bounds:
        name = (self.number, group)
        bounds = self._recent.find(name)
        if bounds is UNKNOWN:
            bounds = self._find_bounds(group)
            self._recent.hold(name, bounds)
        return bounds

    def _find_bounds(self, group: Group) -> Bounds:
        assert self._collected is None, "a series that is not live can't be read"
        unwritten = self._times_in_order(group)
        if not unwritten:
            return self._file.bounds(self.number, hash_group(group))
        stored = self._file.ascending(self.number, hash_group(group))
        first = min(self._first_present(group, stored, iter(unwritten)), default=None)
        if first is None:
            return None
        last = self._last(group, -BEFORE_ALL)
        assert last is not None
        return first, last

    def _last(self, group: Group, at: int) -> int | None:
        """The last time not after `at` (µs)."""
        unwritten = self._times_in_order(group)
        before = (unwritten[index] for index in range(bisect_right(unwritten, at) - 1, -1, -1))
        stored = self._file.descending(self.number, hash_group(group), at)
        return max(self._first_present(group, stored, before), default=None)

    def _first_present(
        self, group: Group, stored: Iterator[int], unwritten: Iterator[int]
    ) -> Iterator[int]:
        """The first of the stored times that no unwritten change removes, and the first of the
        unwritten ones that are there, if there are such."""
        for times, otherwise in ((stored, 1), (unwritten, 0)):
            for time in times:
                if self._unwritten_count(group, time, otherwise):
                    yield time
                    break

    def _unwritten_count(self, group: Group, time: int, otherwise: int) -> int:
        """The new count of a time, `otherwise` where it has not changed."""
        for counts in (self._changed.get(group), self._writing.get(group)):
            if counts is not None and time in counts:
                return counts[time]
        return otherwise

    def _times_in_order(self, group: Group) -> list[int]:
        """The times of a group with counts that are not written: a busy group has thousands."""
        times = self._unwritten_times.get(group)
        if times is None:
            changed, writing = self._changed.get(group, {}), self._writing.get(group, {})
            if not changed and not writing:
                return []
            times = self._unwritten_times[group] = sorted(changed.keys() | writing.keys())
        return times


class FirstSeenSeries:
    """A series for `age`, `interval`, `since` and `first`, of event times, or for `streak`, whose
    times are its values, the arrivals. Changes of sequence numbers up to `up_to` come from the
    journal.
    """

    def __init__(self, plan: SeriesPlan, seen_times: SeenTimes, up_to: int) -> None:
        self.plan = plan
        self.seen_times = seen_times
        self.up_to = up_to

    def put(self, time: int, group: Group, value: Any) -> None:
        """Add one element of event time `time` (µs)."""
        self.seen_times.add(group, value if self.plan.valued else time)

    def take(self, time: int, group: Group, value: Any) -> None:
        """Remove one element, if it is there."""
        self.seen_times.remove(group, value if self.plan.valued else time)

    def read(self, window: Window, group: Group, at: int) -> int | None:
        """The value of a window as of event time `at` (µs), see `read_ages`."""
        return read_ages(self.seen_times, window.function, group, at)


def read_ages(
    seen_times: SeenTimes, function: AggregateFunction, group: Group, at: int
) -> int | None:
    """The value of `function` for a group as of event time `at` (µs).

    `age` is the duration (µs) since the first time, `interval` and `since` since the latest one not
    after `at`, `first` whether there is none, `streak` the number of records.
    """
    if function == "streak":
        key = group if isinstance(group, tuple) else (group,)
        last_break = seen_times.latest((*key, False), -BEFORE_ALL)
        after = BEFORE_ALL if last_break is None else last_break
        return seen_times.count_after((*key, True), after, MAX_STREAK)
    if function in ("interval", "since"):
        latest = seen_times.latest(group, at)
        return None if latest is None else at - latest
    first = seen_times.first(group)
    is_new = first is None or first > at
    if function == "first":
        return is_new
    return None if first is None or is_new else at - first
