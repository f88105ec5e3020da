"""Series that are counted together: an account's whole ones, or those of one filling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Struct

from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    CountedSeries,
    Group,
    Put,
    Record,
    SeriesPlan,
    State,
)
from tollkeeper.engine.velocity.decay import DecayGroups
from tollkeeper.engine.velocity.elements import Element, add_record, elements_of, plan_counting
from tollkeeper.engine.velocity.first_seen import FirstSeenSeries
from tollkeeper.engine.velocity.groups import Clock, Queue
from tollkeeper.engine.velocity.series import Series


class StateChange(Struct, frozen=True, gc=False):
    """A live record's states before and after a change, None where there is no record.

    `decided` says that only the decision has changed.
    """

    sequence: int
    event: str | None
    time: int
    old: State | None
    new: State | None
    decided: bool = False


class ElementsChange(Struct, frozen=True, gc=False):
    """What a live change removes from and adds to series: for each that differs, its digest and the
    elements, each a group and a value.
    """

    sequence: int
    event: str | None
    time: int
    by_series: tuple[tuple[str, tuple[Element, ...], tuple[Element, ...]], ...]


class SeriesRoute(NamedTuple):
    """Series that one function counts. For each of `plans`: the series with its digest (for windows,
    for ages, or both), and the `Put` that adds to them.

    With `live_puts`, elements for ages are deferred until `put_ages`.
    """

    counted: CountedSeries
    plans: tuple[SeriesPlan, ...]
    series: tuple[tuple[Series | FirstSeenSeries, ...], ...]
    puts: tuple[Put, ...]
    live_puts: tuple[Put, ...]


@dataclass
class SeriesSet:
    """Series by digest: for windows and for ages; `lost` are the digests given up over the cap.

    Elements wait in `queue` within a method only.
    """

    windows: dict[str, Series]
    ages: dict[str, FirstSeenSeries]
    clock: Clock
    queue: Queue
    lost: set[str] = field(default_factory=set)
    # The routes of a change, by event type and whether only the decision has changed; made on demand.
    _routes: dict[tuple[str | None, bool], tuple[SeriesRoute, ...]] = field(default_factory=dict)
    # The arrival (µs) at which groups of some series come up for expiry next.
    _expires_at: int = BEFORE_ALL
    # Series with groups that came up for expiry and are still to be swept.
    _sweeping: list[Series] = field(default_factory=list)
    # The highest sequence number that some series is filled up to from the journal.
    _up_to: int = 0
    # Elements of the record being observed, for series for ages.
    _deferred: list[tuple[Put, int, Group, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reset()

    def arrive(self, arrived: int) -> None:
        """Advance the clock to an arrival (µs), and drop some expired elements."""
        clock = self.clock
        if arrived > clock.newest:
            clock.newest = arrived
        if clock.newest >= self._expires_at:
            self._expires_at = min(
                (series.groups.pass_buckets() for series in self.windows.values()),
                default=-BEFORE_ALL,
            )
            self._sweeping = list(self.windows.values())
        if self._sweeping:
            self._sweeping = [series for series in self._sweeping if series.groups.sweep()]

    def count_stored(self, records: Iterable[Record]) -> None:
        """Count the journal's records, in its order, in each series of their event types."""
        try:
            for record in records:
                self.arrive(record.arrived)
                if record.before is None:
                    self._count(record.event, record.time, record.state)
                else:
                    self._replace(record.event, record.time, record.before, record.state)
        finally:
            self.queue.flush()

    def observe(
        self, sequence: int, event: str | None, time: int, state: State
    ) -> list[Group | None]:
        """Add a new live record's elements to each series for windows of its event type.

        Returns its groups, see `group_positions`. Call `put_ages` or `undo_observe` next.
        """
        self._advance_ages(sequence, event)
        groups: list[Group | None] = [None]
        for route in self._routes.get((event, False)) or self._find_routes(event, False):
            groups += route.counted.count(
                state.payment,
                state.decision,
                state.data,
                state.environment,
                state.label,
                time,
                route.live_puts,
            )
        self.queue.flush()
        return groups

    def reads_decision(self, event: str | None) -> bool:
        """Whether a series of the event type reads decisions."""
        return bool(self._find_routes(event, True))

    def put_ages(self) -> None:
        """Add the observed record's elements to the series for ages, too."""
        for put, time, group, value in self._deferred:
            put(time, group, value)
        self._deferred.clear()

    def undo_observe(self, event: str | None, time: int, state: State) -> None:
        """Remove the observed record's elements from the series for windows."""
        self._deferred.clear()
        for route in self._find_routes(event, False):
            elements = elements_of(route.counted.count, len(route.puts), state)
            for index, items in elements.items():
                for series in route.series[index]:
                    if isinstance(series, Series):
                        for group, value in items:
                            series.take(time, group, value)

    def group_positions(self, event: str | None) -> dict[str, int]:
        """The index of each series' group, by digest, in what `observe` returns for the event type.

        Index 0 holds None, for series that are not in the set.
        """
        positions: dict[str, int] = {}
        first = 1
        for counted, plans, *_ in self._find_routes(event, False):
            positions |= {
                plan.digest: first + position
                for plan, position in zip(plans, counted.positions, strict=True)
            }
            first += 1 + max(counted.positions, default=-1)
        return positions

    def change(self, change: StateChange) -> None:
        """Apply a live change to each series that it concerns."""
        sequence, event = change.sequence, change.event
        self._advance_ages(sequence, event)
        if change.old is None and change.new is not None and sequence > self._up_to:
            self._count(event, change.time, change.new)
            self.queue.flush()
            return
        for route in self._find_routes(event, change.decided):
            before, after = _elements_of_states(route, change.old, change.new)
            _replace(route, change.time, before, after, sequence)

    def elements_changed(self, change: StateChange) -> ElementsChange:
        """The elements that a live change removes and adds, for `change_elements`."""
        by_series = []
        for route in self._find_routes(change.event, change.decided):
            before, after = _elements_of_states(route, change.old, change.new)
            for index, plan in enumerate(route.plans):
                removed, added = before.get(index, ()), after.get(index, ())
                if removed != added:
                    by_series.append((plan.digest, tuple(removed), tuple(added)))
        return ElementsChange(change.sequence, change.event, change.time, tuple(by_series))

    def change_elements(self, change: ElementsChange) -> None:
        """Apply a live change to each series that it concerns and that is still in the set."""
        self._advance_ages(change.sequence, change.event)
        for digest, removed, added in change.by_series:
            for series in (self.windows.get(digest), self.ages.get(digest)):
                if series is not None and change.sequence > series.up_to:
                    _replace_elements(series, change.time, removed, added)

    def _count(self, event: str | None, time: int, state: State) -> None:
        for route in self._routes.get((event, False)) or self._find_routes(event, False):
            add_record(route.counted.add, state, time, route.puts)

    def _replace(self, event: str | None, time: int, old: State, new: State) -> None:
        for route in self._find_routes(event, False):
            before, after = _elements_of_states(route, old, new)
            if before != after:
                # The elements to remove may still wait in the queue.
                self.queue.flush()
                _replace(route, time, before, after, None)

    def reach(self, sequence: int) -> None:
        """Set the sequence number of the next changes in the series for ages."""
        for ages in self.ages.values():
            ages.seen_times.reach(sequence)

    def _advance_ages(self, sequence: int, event: str | None) -> None:
        for ages in self.ages.values():
            if sequence > ages.up_to and ages.plan.event == event:
                ages.seen_times.reach(sequence)

    def _find_routes(self, event: str | None, decided: bool) -> tuple[SeriesRoute, ...]:
        routes = self._routes.get((event, decided))
        if routes is None:
            routes = self._routes[event, decided] = tuple(self._new_routes(event, decided))
        return routes

    def join(self, other: SeriesSet) -> None:
        """Take over another set's series."""
        for series in other.windows.values():
            series.groups.clock = self.clock
        self.windows.update(other.windows)
        self.ages.update(other.ages)
        self.lost = (self.lost - other.windows.keys()) | other.lost
        self._reset()

    def keep(self, plans: Mapping[str, SeriesPlan]) -> None:
        """Drop series that `plans` don't need, and shorten those that they need less of."""
        for digest, series in list(self.windows.items()):
            plan = plans.get(digest)
            if plan is None or plan.over is None:
                del self.windows[digest]
            else:
                series.shorten(plan.over)
                series.plan = plan
                series.groups.lengths = plan.distinct
        for digest, ages in list(self.ages.items()):
            if digest not in plans or not plans[digest].ages:
                ages.seen_times.discard()
                del self.ages[digest]
            else:
                ages.plan = plans[digest]
        self.lost &= plans.keys()
        self._reset()

    def give_up(self, digest: str) -> None:
        del self.windows[digest]
        self.lost.add(digest)
        self._reset()

    def _reset(self) -> None:
        self._routes.clear()
        self._expires_at = BEFORE_ALL
        self._sweeping = []
        self._up_to = max((each.up_to for each in self._all()), default=0)

    def _all(self) -> list[Series | FirstSeenSeries]:
        return [*self.windows.values(), *self.ages.values()]

    def _new_routes(self, event: str | None, decided: bool) -> list[SeriesRoute]:
        by_digest: dict[str, list[Series | FirstSeenSeries]] = {}
        plans: dict[str, SeriesPlan] = {}
        for each in self._all():
            if each.plan.event == event and (each.plan.decided or not decided):
                by_digest.setdefault(each.plan.digest, []).append(each)
                plans.setdefault(each.plan.digest, each.plan)
        routes = []
        for counted, members in plan_counting(list(plans.values())):
            series = [tuple(by_digest[plan.digest]) for plan in members]
            puts = [_join_puts(list(map(self._put, both))) for both in series]
            live = [_join_puts(list(map(self._live_put, both))) for both in series]
            routes.append(SeriesRoute(counted, members, tuple(series), tuple(puts), tuple(live)))
        return routes

    def _put(self, series: Series | FirstSeenSeries) -> Put:
        if isinstance(series, FirstSeenSeries) or isinstance(series.groups, DecayGroups):
            return series.put
        return self.queue.put_into(series.groups)

    def _live_put(self, series: Series | FirstSeenSeries) -> Put:
        if isinstance(series, Series):
            return self._put(series)
        defer, put = self._deferred.append, series.put
        return lambda time, group, value: defer((put, time, group, value))


def _join_puts(puts: Sequence[Put]) -> Put:
    if len(puts) == 1:
        return puts[0]
    one, other = puts

    def put(time: int, group: Any, value: Any) -> None:
        one(time, group, value)
        other(time, group, value)

    return put


def _replace(
    route: SeriesRoute,
    time: int,
    before: Mapping[int, Sequence[Element]],
    after: Mapping[int, Sequence[Element]],
    sequence: int | None,
) -> None:
    """Remove the elements of a record's old state, and add those of its new one, by series' index.

    A series that was filled with the change at `sequence` from the journal is left as it is.
    """
    for index, both in enumerate(route.series):
        removed, added = before.get(index, ()), after.get(index, ())
        if removed == added:
            continue
        for series in both:
            if sequence is None or sequence > series.up_to:
                _replace_elements(series, time, removed, added)


def _elements_of_states(
    route: SeriesRoute, old: State | None, new: State | None
) -> tuple[dict[int, list[Element]], dict[int, list[Element]]]:
    count, puts = route.counted.count, len(route.puts)
    return elements_of(count, puts, old), elements_of(count, puts, new)


def _replace_elements(
    series: Series | FirstSeenSeries,
    time: int,
    removed: Iterable[Element],
    added: Iterable[Element],
) -> None:
    for group, value in removed:
        series.take(time, group, value)
    for group, value in added:
        series.put(time, group, value)
