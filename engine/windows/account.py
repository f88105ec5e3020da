"""One account's series: those that are whole, and those being filled beside the traffic.

An account over its cap gives up its largest series rather than the oldest or the newest records
of all: what a series answers is exact or missing, never about right. The largest one is what a
flood of new keys makes, so the other rules keep their history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from tollkeeper.engine.windows.ages import Ages
from tollkeeper.engine.windows.contract import (
    BEFORE_ALL,
    LATE,
    AbandonedError,
    Fill,
    NotWholeError,
    Read,
    Record,
    SeriesPlan,
    SeriesStatus,
    State,
    Window,
)
from tollkeeper.engine.windows.elements import grouped
from tollkeeper.engine.windows.moments import Moments
from tollkeeper.engine.windows.plan import merged
from tollkeeper.engine.windows.series import Series
from tollkeeper.grammar.program import Value

SEALED_AT_ONCE = 500
"""How many changes one step of sealing merges, so that a step takes about a millisecond."""


class Change(Struct, frozen=True, gc=False):
    """A live record as known before and after, None where it is not there.

    `decided` says that nothing but the decision is new.
    """

    place: int
    event: str | None
    time: int
    old: State | None
    new: State | None
    decided: bool = False


class Route(NamedTuple):
    """Series that find the same key in a record: that of `plan`, which is one of theirs."""

    plan: SeriesPlan
    windows: list[Series]
    ages: list[Ages]


@dataclass
class Holdings:
    """Series by digest: for windows, for ages, and given up over the cap.

    `routes` are those that a change concerns, by the event's type and whether only the decision is
    new; they are made when first needed.
    """

    windows: dict[str, Series] = field(default_factory=dict)
    ages: dict[str, Ages] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    routes: dict[tuple[str | None, bool], Sequence[Route]] = field(default_factory=dict)

    def change(self, change: Change, newest: int) -> None:
        """Brings a change to each series it concerns, `newest` the latest arrival (µs)."""
        place, time = change.place, change.time
        for plan, windows, ages in self._routes(change.event, change.decided):
            old = None if change.old is None else grouped(plan, change.old)
            new = None if change.new is None else grouped(plan, change.new)
            for series in windows:
                if place > series.up_to:
                    series.change(time, old, new, newest)
            for each in ages:
                if place > each.up_to:
                    each.change(time, old, new)

    def take_in(self, record: Record, newest: int) -> None:
        """Brings a stored record to each series that holds its event."""
        for plan, windows, ages in self._routes(record.event, decided=False):
            old = None if record.before is None else grouped(plan, record.before)
            new = grouped(plan, record.state)
            for series in windows:
                series.change(record.time, old, new, newest)
            for each in ages:
                each.change(record.time, old, new)

    def _routes(self, event: str | None, decided: bool) -> Sequence[Route]:
        routes = self.routes.get((event, decided))
        if routes is None:
            routes = self.routes[event, decided] = self._new_routes(event, decided)
        return routes

    def _new_routes(self, event: str | None, decided: bool) -> Sequence[Route]:
        def concerned(series: Series | Ages) -> bool:
            return series.plan.event == event and (series.plan.decided or not decided)

        found: dict[str, Route] = {}
        for series in filter(concerned, self.windows.values()):
            found.setdefault(series.plan.by, Route(series.plan, [], [])).windows.append(series)
        for ages in filter(concerned, self.ages.values()):
            found.setdefault(ages.plan.by, Route(ages.plan, [], [])).ages.append(ages)
        return tuple(found.values())

    def join(self, other: Holdings) -> None:
        """Takes over what another holds."""
        self.windows.update(other.windows)
        self.ages.update(other.ages)
        self.lost = (self.lost - other.windows.keys()) | other.lost
        self.routes.clear()

    def keep(self, plans: Mapping[str, SeriesPlan]) -> None:
        """Drops what `plans` don't need, and shortens what they need less of."""
        for digest, series in list(self.windows.items()):
            plan = plans.get(digest)
            if plan is None or plan.over is None:
                del self.windows[digest]
            else:
                series.over = min(series.over, plan.over)
        for digest, ages in list(self.ages.items()):
            if digest not in plans or not plans[digest].ages:
                ages.moments.discard()
                del self.ages[digest]
        self.lost &= plans.keys()
        self.routes.clear()

    def give_up(self, digest: str) -> None:
        del self.windows[digest]
        self.lost.add(digest)
        self.routes.clear()


@dataclass
class Filling:
    """Series being filled; what is observed meanwhile is put aside."""

    holdings: Holdings
    newest: int
    aside: deque[Change] = field(default_factory=deque)


class Account:
    """`newest` is the latest arrival (µs)."""

    def __init__(self, number: int, moments: Callable[[int, str], Moments]) -> None:
        self.newest = BEFORE_ALL
        self._number = number
        self._moments = moments
        self._whole = Holdings()
        self._fillings: dict[int, Filling] = {}

    @property
    def entries(self) -> int:
        """How many elements all series hold."""
        return sum(series.entries for each in self._all() for series in each.windows.values())

    def ages_at(self, reads: Sequence[Read], at: int) -> list[Value | None]:
        """A value for each read, as of event time `at` (µs): so far those of ages alone.

        Raises `NotWholeError` when one of the reads' series can't be read.
        """
        windows, ages, lost = self._whole.windows, self._whole.ages, self._whole.lost
        values: list[Value | None] = [None] * len(reads)
        for index, (window, key) in enumerate(reads):
            digest = window.series
            if window.over is not None:
                series = windows.get(digest)
                if (series is None or series.over < window.over) and digest not in lost:
                    raise NotWholeError(digest)
            elif digest not in ages:
                raise NotWholeError(digest)
            elif key is not None:
                values[index] = ages[digest].read(window, key, at)
        return values

    def windows_at(self, reads: Sequence[Read], at: int, values: list[Value | None]) -> None:
        """Completes `values` with those of windows."""
        if at < self.newest - LATE:
            return
        windows = self._whole.windows
        for index, (window, key) in enumerate(reads):
            if key is not None and window.over is not None:
                series = windows.get(window.series)
                if series is not None and series.over >= window.over:
                    values[index] = series.read(window, key, at)

    def lost_at(self, reads: Sequence[Read], at: int) -> tuple[int, ...]:
        """The indexes of the reads that cannot be exact."""
        too_late = at < self.newest - LATE
        if not (self._whole.lost or too_late):
            return ()
        return tuple(
            index
            for index, (window, _) in enumerate(reads)
            if window.over is not None and (too_late or self._held(window) is None)
        )

    def change(self, change: Change) -> None:
        """Counts a live change, and puts it aside for the series that are being filled."""
        self._whole.change(change, self.newest)
        for filling in self._fillings.values():
            filling.aside.append(change)

    def begin(self, number: int, up_to: int, plans: Sequence[SeriesPlan]) -> Fill:
        """A fill of what `plans` need and is not whole."""
        holdings = Holdings()
        for plan in merged(plans):
            held = self._whole.windows.get(plan.digest)
            if plan.over is not None and (held is None or held.over < plan.over):
                holdings.windows[plan.digest] = Series(plan, plan.over, up_to)
            if plan.ages and plan.digest not in self._whole.ages:
                moments = self._moments(self._number, plan.digest)
                holdings.ages[plan.digest] = Ages(plan, moments, up_to)
        self._fillings[number] = Filling(holdings, BEFORE_ALL)
        longest = max((series.over for series in holdings.windows.values()), default=0)
        return Fill(
            number=number,
            account=self._number,
            series=tuple(dict.fromkeys([*holdings.windows, *holdings.ages])),
            reach=None if holdings.ages else longest + LATE,
            up_to=up_to,
        )

    def take_in(self, fill: Fill, records: Iterable[Record]) -> None:
        """Counts stored records in the series of a fill."""
        filling = self._filling(fill)
        for record in records:
            filling.newest = max(filling.newest, record.arrived)
            filling.holdings.take_in(record, filling.newest)

    def seal(self, fill: Fill) -> bool:
        """Merges some of what was put aside; true once nothing is left and the series are whole."""
        filling = self._filling(fill)
        self.newest = max(self.newest, filling.newest)
        for _ in range(min(SEALED_AT_ONCE, len(filling.aside))):
            filling.holdings.change(filling.aside.popleft(), self.newest)
        if filling.aside:
            return False
        self._whole.join(filling.holdings)
        del self._fillings[fill.number]
        return True

    def keep(self, plans: Sequence[SeriesPlan]) -> None:
        """Gives back what none of `plans` needs."""
        needed = {plan.digest: plan for plan in merged(plans)}
        for each in self._all():
            each.keep(needed)
        for number, filling in list(self._fillings.items()):
            holdings = filling.holdings
            if not (holdings.windows or holdings.ages or holdings.lost):
                del self._fillings[number]

    def give_up_largest(self) -> str:
        """Drops the series that holds most; its digest."""
        holdings, digest = max(
            ((each, digest) for each in self._all() for digest in each.windows),
            key=lambda held: held[0].windows[held[1]].entries,
        )
        holdings.give_up(digest)
        return digest

    def statuses(self) -> tuple[SeriesStatus, ...]:
        """The state of each series, those for ages aside."""
        filling = [
            SeriesStatus(digest, "filling", series.keys, series.entries)
            for each in self._fillings.values()
            for digest, series in each.holdings.windows.items()
        ]
        whole = [
            SeriesStatus(digest, "whole", series.keys, series.entries)
            for digest, series in self._whole.windows.items()
        ]
        lost = [SeriesStatus(digest, "over_cap", 0, 0) for digest in sorted(self._whole.lost)]
        return (*whole, *filling, *lost)

    def _held(self, window: Window) -> Series | None:
        """The series of a window, when it reaches as far back."""
        series = self._whole.windows.get(window.series)
        return None if series is None or series.over < (window.over or 0) else series

    def _all(self) -> list[Holdings]:
        return [self._whole, *(filling.holdings for filling in self._fillings.values())]

    def _filling(self, fill: Fill) -> Filling:
        filling = self._fillings.get(fill.number)
        if filling is None:
            raise AbandonedError(fill.number)
        return filling
