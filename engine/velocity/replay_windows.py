"""A program's aggregates over history, kept while it is replayed in the order of its sequence.

They are those of `velocity/contract.py`. Nobody else reads or writes meanwhile and nothing is ever
withdrawn, so that what the live windows do to stay responsive is left out: groups are swept all at
once, a record brings its key once for all, and an update to nothing that counts is passed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from tollkeeper.engine.velocity.aggregates import RECOUNTS, Recount
from tollkeeper.engine.velocity.contract import BEFORE_ALL, Group, Key, SeriesPlan, Window
from tollkeeper.engine.velocity.elements import group_of
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes, read_ages
from tollkeeper.engine.velocity.run import Run
from tollkeeper.grammar.program import Value

ReplayedGroup: TypeAlias = tuple[int, Any] | Run
"""A group of one element, as most are, without a run: its time and its value."""

WindowRead: TypeAlias = tuple[int, Window, int, Recount, dict[Group, ReplayedGroup]]
"""The index of a read, its window with its length (µs), how it is counted, the series' groups."""

ONE = (True,)
"""What every payment brings to a series that counts payments alone."""


class ReplayedSeries(NamedTuple):
    """A series as a replay keeps it.

    `history` is the index of a history whose key is a payment's own. `plain` says that every
    record brings one bare element; `updated` whether an update can change what a payment brings.
    """

    plan: SeriesPlan
    history: int
    plain: bool
    updated: bool


PartialValues: TypeAlias = tuple[Group | None, Sequence[Any]]
NOTHING: PartialValues = (None, ())


class Contribution(Struct, gc=False):
    """What a payment brought so far: for each series its group, and the values that count.

    `seen` are the facts that an update can change, as they were.
    """

    time: int
    decision: Any
    parts: list[PartialValues]
    seen: Sequence[Any] = ()


class Spans:
    """One series' elements by group, as far back as its longest window reaches."""

    def __init__(self, over: int, valued: bool) -> None:
        self.over = over
        self.groups: dict[Group, ReplayedGroup] = {}
        self._valued = valued

    def put(self, group: Group, time: int, value: Any) -> None:
        held = self.groups.get(group)
        if held is None:
            self.groups[group] = (time, value)
        elif isinstance(held, Run):
            held.insert(time, value)
        else:
            run = self.groups[group] = Run(self._valued)
            run.insert(*held)
            run.insert(time, value)

    def take(self, group: Group, time: int, value: Any) -> None:
        held = self.groups.get(group)
        if isinstance(held, Run):
            held.remove(time, value)
        elif held == (time, value):
            del self.groups[group]

    def sweep(self, horizon: int) -> None:
        """Drops what is not later than `horizon` (µs)."""
        for held in self.groups.values():
            if isinstance(held, Run):
                held.trim(horizon)
        gone = [
            group
            for group, held in self.groups.items()
            if not (held if isinstance(held, Run) else held[0] > horizon)
        ]
        for group in gone:
            del self.groups[group]


class ReplayWindows:
    """`windows` are a program's, one for each of its histories; `kept` are their series, those of
    payments first.

    `changing` gives the facts that an update can change and a series reads, None without any.
    `late` (µs) is how far behind the latest arrival a record's event time may be.
    """

    def __init__(
        self,
        kept: Sequence[ReplayedSeries],
        windows: Sequence[Window],
        changing: Callable[[Any], Sequence[Any]] | None,
        late: int,
    ) -> None:
        self._late = late
        self._kept = tuple(kept)
        self._changing = changing
        self._updated = [index for index, each in enumerate(kept) if each.updated]
        self._values_of = [_values_of(each.plan) for each in kept]
        self._decided = [index for index, each in enumerate(kept) if each.plan.decided]
        self._spans = [Spans(each.plan.over or 0, each.plan.valued) for each in kept]
        self._seen_times = [MemorySeenTimes() for _ in kept]
        place = {each.plan.digest: index for index, each in enumerate(kept)}
        self._reads = [
            (
                index,
                window,
                window.over,
                RECOUNTS[window.function],
                self._spans[place[window.series]].groups,
            )
            for index, window in enumerate(windows)
            if window.over is not None
        ]
        self._reads_of_earlier = [read for read in self._reads if read[1].earlier]
        self._reads = [read for read in self._reads if not read[1].earlier]
        self._ages = [
            (index, window.function, self._seen_times[place[window.series]])
            for index, window in enumerate(windows)
            if window.over is None
        ]
        self._counted = [
            (
                each.history,
                None if each.plain else self._values_of[index],
                each.plan.over,
                self._spans[index].groups,
                self._spans[index].put,
                each.plan.ages,
                index,
            )
            for index, each in enumerate(kept)
            if each.plan.event is None
        ]
        self._happening: defaultdict[str, list[int]] = defaultdict(list)
        for index, each in enumerate(kept):
            if each.plan.event is not None:
                self._happening[each.plan.event].append(index)
        self._followed = changing is not None or bool(self._decided)
        self._span = late + max((each.plan.over or 0 for each in kept), default=0)
        self._sweep_at = BEFORE_ALL
        self._newest = BEFORE_ALL
        self._known: dict[str, Contribution] = {}

    def pass_by(self, id_: str, facts: Any, keys: Sequence[Key | None], decision: Any) -> None:
        """Counts a payment that nothing is decided about."""
        self._arrive(facts.arrived)
        parts = self._count(facts, keys, decision)
        self._follow(id_, facts, parts, decision)

    def observe(
        self, id_: str, facts: Any, keys: Sequence[Key | None], decision: Any
    ) -> list[Value | None]:
        """Counts a payment, and gives the aggregates that it reads; `decision` counts from then."""
        self._arrive(facts.arrived)
        at = facts.timestamp
        values: list[Value | None] = [None] * len(keys)
        if self._ages:
            self._read_ages(keys, at, values)
        is_late = at < self._newest - self._late
        if self._reads_of_earlier and not is_late:
            _read(self._reads_of_earlier, keys, at, values)
        parts = self._count(facts, keys, None)
        if not is_late:
            _read(self._reads, keys, at, values)
        if self._followed:
            contribution = self._follow(id_, facts, parts, decision)
            self._recount(contribution, facts, decision, self._decided)
        return values

    def update(self, id_: str, facts: Any, arrived: int) -> None:
        """What is known of a payment from now on, `facts`; `arrived` (µs) is the update's."""
        self._arrive(arrived)
        contribution = self._known.get(id_)
        if contribution is None or self._changing is None:
            return
        seen = self._changing(facts)
        if seen != contribution.seen:
            contribution.seen = seen
            self._recount(contribution, facts, contribution.decision, self._updated)

    def happen(self, type_: str, time: int, data: Any, arrived: int) -> None:
        """Counts an event; `time` and `arrived` in µs."""
        self._arrive(arrived)
        earliest = self._newest - self._late
        for index in self._happening[type_]:
            plan = self._kept[index].plan
            key = plan.compiled.key(None, None, data)
            if key is None:
                continue
            group, values = group_of(key), self._values_of[index](None, None, data)
            if plan.over is not None and time > earliest - plan.over:
                for value in values:
                    self._spans[index].put(group, time, value)
            if plan.ages and values:
                self._seen_times[index].add(group, time)

    def _arrive(self, arrived: int) -> None:
        if arrived > self._newest:
            self._newest = arrived
            if arrived >= self._sweep_at:
                self._sweep()

    def _count(self, facts: Any, keys: Sequence[Key | None], decision: Any) -> list[PartialValues]:
        time, earliest = facts.timestamp, self._newest - self._late
        parts: list[PartialValues] = []
        for history, values_of, over, groups, put, aged, index in self._counted:
            key = keys[history]
            if key is None:
                parts.append(NOTHING)
                continue
            group = key[0] if len(key) == 1 else key
            values = ONE if values_of is None else values_of(facts, decision, None)
            if over is not None and time > earliest - over:
                if values is ONE and group not in groups:
                    groups[group] = (time, True)
                else:
                    for value in values:
                        put(group, time, value)
            if aged and values:
                self._seen_times[index].add(group, time)
            parts.append((group, values))
        return parts

    def _follow(
        self, id_: str, facts: Any, parts: list[PartialValues], decision: Any
    ) -> Contribution:
        """Keeps what a payment brought, when an update may change it."""
        contribution = Contribution(facts.timestamp, decision, parts)
        if self._changing is not None:
            contribution.seen = self._changing(facts)
            self._known[id_] = contribution
        return contribution

    def _recount(
        self, contribution: Contribution, facts: Any, decision: Any, series: Sequence[int]
    ) -> None:
        """Takes out what a payment brought to some series, puts in what it brings now."""
        time, earliest = contribution.time, self._newest - self._late
        for index in series:
            plan = self._kept[index].plan
            old_group, old_values = contribution.parts[index]
            key = plan.compiled.key(facts, decision, None)
            group = None if key is None else group_of(key)
            values = () if key is None else self._values_of[index](facts, decision, None)
            contribution.parts[index] = (group, values)
            if old_group == group and old_values == values:
                continue
            if plan.over is not None and time > earliest - plan.over:
                spans = self._spans[index]
                for value in old_values:
                    spans.take(old_group, time, value)  # type: ignore[arg-type]  # brought nothing without
                for value in values:
                    spans.put(group, time, value)  # type: ignore[arg-type]
            if plan.ages:
                self._remember(
                    index, time, old_group if old_values else None, group if values else None
                )

    def _remember(self, index: int, time: int, was: Group | None, now: Group | None) -> None:
        if was == now:
            return
        if was is not None:
            self._seen_times[index].remove(was, time)
        if now is not None:
            self._seen_times[index].add(now, time)

    def _read_ages(self, keys: Sequence[Key | None], at: int, values: list[Value | None]) -> None:
        for index, function, seen_times in self._ages:
            key = keys[index]
            if key is None:
                continue
            values[index] = read_ages(seen_times, function, group_of(key), at)

    def _sweep(self) -> None:
        self._sweep_at = self._newest + self._span
        for spans in self._spans:
            spans.sweep(self._newest - self._late - spans.over)
        if not self._ages:
            horizon = self._newest - self._span
            for id_ in [id_ for id_, each in self._known.items() if each.time <= horizon]:
                del self._known[id_]


def _read(
    reads: Sequence[WindowRead], keys: Sequence[Key | None], at: int, values: list[Value | None]
) -> None:
    """Gives `values` the aggregates of windows, as of event time `at` (µs)."""
    for index, window, over, recount, groups in reads:
        key = keys[index]
        if key is None:
            continue
        held = groups.get(key[0] if len(key) == 1 else key)
        if isinstance(held, Run):
            values[index] = held.read(window, at)
        else:
            inside = held is not None and at - over < held[0] <= at
            values[index] = recount(held[1:] if inside and held else (), window.type)


def _values_of(plan: SeriesPlan) -> Callable[[Any, Any, Any], Sequence[Any]]:
    """What a record brings that counts, as a function of its facts, what was decided, its data."""
    contribution = plan.compiled.values
    if plan.missing:
        return contribution

    def without_missing(facts: Any, decision: Any, data: Any) -> Sequence[Any]:
        values = contribution(facts, decision, data)
        return [value for value in values if value is not None] if None in values else values

    return without_missing
