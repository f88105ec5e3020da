"""Series that are counted together: the whole ones of an account, or those of one filling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Struct

from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    CountedSeries,
    Group,
    Put,
    SeriesPlan,
    State,
)
from tollkeeper.engine.velocity.elements import bring, elements_of, plan_counting
from tollkeeper.engine.velocity.first_seen import FirstSeenSeries
from tollkeeper.engine.velocity.groups import Clock
from tollkeeper.engine.velocity.series import Series


class StateChange(Struct, frozen=True, gc=False):
    """A live record as known before and after, None where it is not there.

    `decided` says that nothing but the decision is new.
    """

    sequence: int
    event: str | None
    time: int
    old: State | None
    new: State | None
    decided: bool = False


class SeriesRoute(NamedTuple):
    """Series that one function counts: the puts that it takes, and who they belong to.

    With `live_puts` the ages are put off until `put_ages`.
    """

    counted: CountedSeries
    plans: tuple[SeriesPlan, ...]
    held: tuple[tuple[Series | FirstSeenSeries, ...], ...]
    puts: tuple[Put, ...]
    live_puts: tuple[Put, ...]


@dataclass
class SeriesSet:
    """Series by digest: for windows, for ages, and given up over the cap.

    `routes` are those that a change concerns, by the event's type and whether only the decision is
    new; they are made when first needed.
    """

    windows: dict[str, Series]
    ages: dict[str, FirstSeenSeries]
    clock: Clock
    lost: set[str] = field(default_factory=set)
    _routes: dict[tuple[str | None, bool], tuple[SeriesRoute, ...]] = field(default_factory=dict)
    _passes_at: int = BEFORE_ALL
    _sweeping: list[Series] = field(default_factory=list)
    _up_to: int = 0
    _put_off: list[tuple[Put, int, Group, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin_anew()

    def arrive(self, arrived: int) -> None:
        """Something arrived at that time (µs): some of what is over goes."""
        clock = self.clock
        if arrived > clock.newest:
            clock.newest = arrived
        if clock.newest >= self._passes_at:
            self._passes_at = min(
                (series.groups.pass_buckets() for series in self.windows.values()),
                default=-BEFORE_ALL,
            )
            self._sweeping = list(self.windows.values())
        if self._sweeping:
            self._sweeping = [series for series in self._sweeping if series.groups.sweep()]

    def count(self, event: str | None, time: int, state: State) -> None:
        """Brings a stored record of event time `time` (µs) to each series that holds its event."""
        for route in self._routes.get((event, False)) or self._find_routes(event, False):
            bring(route.counted.function, state, time, route.puts)

    def observe(
        self, sequence: int, event: str | None, time: int, state: State
    ) -> list[Group | None]:
        """Brings a new live record to each series for windows that holds its event.

        Gives its groups; see `group_positions`. To be followed by `put_ages`.
        """
        self._reach(sequence, event)
        groups: list[Group | None] = [None]
        for route in self._routes.get((event, False)) or self._find_routes(event, False):
            groups += route.counted.function(
                state.payment,
                state.decision,
                state.data,
                state.environment,
                state.label,
                time,
                route.live_puts,
            )
        return groups

    def reads_decision(self, event: str | None) -> bool:
        """Whether a series of the event reads what was decided."""
        return bool(self._find_routes(event, True))

    def put_ages(self) -> None:
        """Brings the record that was observed to the series for ages, too."""
        for put, time, group, value in self._put_off:
            put(time, group, value)
        self._put_off.clear()

    def take_back(self, event: str | None, time: int, state: State) -> None:
        """Takes the record that was observed out of the series for windows again."""
        self._put_off.clear()
        for route in self._find_routes(event, False):
            elements = elements_of(route.counted.function, len(route.puts), state)
            for index, items in elements.items():
                for owner in route.held[index]:
                    if isinstance(owner, Series):
                        for group, value in items:
                            owner.take(time, group, value)

    def group_positions(self, event: str | None) -> dict[str, int]:
        """Where a record's groups in the series of its event are, by the series' digests.

        The first is that of series which aren't there.
        """
        found: dict[str, int] = {}
        before = 1
        for (_, positions), plans, *_ in self._find_routes(event, False):
            found |= {plan.digest: before + at for plan, at in zip(plans, positions, strict=True)}
            before += 1 + max(positions, default=-1)
        return found

    def change(self, change: StateChange) -> None:
        """Brings a live change to each series it concerns."""
        sequence, event = change.sequence, change.event
        self._reach(sequence, event)
        if change.old is None and change.new is not None and sequence > self._up_to:
            self.count(event, change.time, change.new)
            return
        for route in self._find_routes(event, change.decided):
            _replace(route, change.time, change.old, change.new, sequence)

    def replace(self, event: str | None, time: int, old: State, new: State) -> None:
        """Brings a stored update to each series that holds its event."""
        for route in self._find_routes(event, False):
            _replace(route, time, old, new, None)

    def reach(self, sequence: int) -> None:
        """All up to a sequence number is counted from now on."""
        for ages in self.ages.values():
            ages.seen_times.reach(sequence)

    def _reach(self, sequence: int, event: str | None) -> None:
        for ages in self.ages.values():
            if sequence > ages.up_to and ages.plan.event == event:
                ages.seen_times.reach(sequence)

    def _find_routes(self, event: str | None, decided: bool) -> tuple[SeriesRoute, ...]:
        routes = self._routes.get((event, decided))
        if routes is None:
            routes = self._routes[event, decided] = tuple(self._new_routes(event, decided))
        return routes

    def join(self, other: SeriesSet) -> None:
        """Takes over what another holds."""
        for series in other.windows.values():
            series.groups.clock = self.clock
        self.windows.update(other.windows)
        self.ages.update(other.ages)
        self.lost = (self.lost - other.windows.keys()) | other.lost
        self._begin_anew()

    def keep(self, plans: Mapping[str, SeriesPlan]) -> None:
        """Drops what `plans` don't need, and shortens what they need less of."""
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
        self._begin_anew()

    def give_up(self, digest: str) -> None:
        del self.windows[digest]
        self.lost.add(digest)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._routes.clear()
        self._passes_at = BEFORE_ALL
        self._sweeping = []
        self._up_to = max((each.up_to for each in self._all()), default=0)

    def _all(self) -> list[Series | FirstSeenSeries]:
        return [*self.windows.values(), *self.ages.values()]

    def _new_routes(self, event: str | None, decided: bool) -> list[SeriesRoute]:
        held: dict[str, list[Series | FirstSeenSeries]] = {}
        plans: dict[str, SeriesPlan] = {}
        for each in self._all():
            if each.plan.event == event and (each.plan.decided or not decided):
                held.setdefault(each.plan.digest, []).append(each)
                plans.setdefault(each.plan.digest, each.plan)
        routes = []
        for made, members in plan_counting(list(plans.values())):
            owners = [tuple(held[plan.digest]) for plan in members]
            puts = [_together([owner.put for owner in each]) for each in owners]
            live = [_together(list(map(self._live_put, each))) for each in owners]
            routes.append(SeriesRoute(made, members, tuple(owners), tuple(puts), tuple(live)))
        return routes

    def _live_put(self, owner: Series | FirstSeenSeries) -> Put:
        if isinstance(owner, Series):
            return owner.put
        put_off, put = self._put_off.append, owner.put
        return lambda time, group, value: put_off((put, time, group, value))


def _together(puts: Sequence[Put]) -> Put:
    if len(puts) == 1:
        return puts[0]
    one, other = puts

    def put(time: int, group: Any, value: Any) -> None:
        one(time, group, value)
        other(time, group, value)

    return put


def _replace(
    route: SeriesRoute, time: int, old: State | None, new: State | None, sequence: int | None
) -> None:
    """Takes out what a record brought as known before, and puts in what it brings now.

    A change that a series has from the journal already is passed over.
    """
    before, after = (
        elements_of(route.counted.function, len(route.puts), each) for each in (old, new)
    )
    if before == after:
        return
    for index, owners in enumerate(route.held):
        was, becomes = before.get(index, ()), after.get(index, ())
        if was == becomes:
            continue
        for owner in owners:
            if sequence is None or sequence > owner.up_to:
                for group, value in was:
                    owner.take(time, group, value)
                for group, value in becomes:
                    owner.put(time, group, value)
