"""What a record brings to series: an element's group and value, and the functions that find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tollkeeper.engine.velocity.contract import (
    Count,
    CountedSeries,
    Group,
    Key,
    Put,
    SeriesPlan,
    State,
)


def group_of(key: Key) -> Group:
    """The group that a key names."""
    return key[0] if len(key) == 1 else key


def plan_counting(
    plans: Sequence[SeriesPlan],
) -> list[tuple[CountedSeries, tuple[SeriesPlan, ...]]]:
    """What together counts all these series: those of a program at once, where it can."""
    together: defaultdict[int, list[SeriesPlan]] = defaultdict(list)
    for plan in plans:
        together[id(plan.counting)].append(plan)
    found = []
    for members in together.values():
        counting = members[0].counting
        if counting is None:
            made = _one_by_one(members)
        else:
            made = counting(tuple(plan.digest for plan in members))
        found.append((made, tuple(members)))
    return found


def _one_by_one(plans: Sequence[SeriesPlan]) -> CountedSeries:
    by_key: dict[str, list[int]] = {}
    for index, plan in enumerate(plans):
        by_key.setdefault(plan.by, []).append(index)
    keys = [plans[members[0]].compiled.key for members in by_key.values()]
    members_of = [
        [(index, plans[index].compiled.values, plans[index].missing) for index in members]
        for members in by_key.values()
    ]

    def count(
        p: Any, d: Any, v: Any, e: Any, y: Any, time: int, puts: Sequence[Put]
    ) -> Sequence[Any]:
        found = [key_of(p, d, v, e, y) for key_of in keys]
        groups = [None if key is None else group_of(key) for key in found]
        for group, members in zip(groups, members_of, strict=True):
            if group is None:
                continue
            for index, values_of, missing in members:
                for value in values_of(p, d, v, e, y):
                    if missing or value is not None:
                        puts[index](time, group, value)
        return groups

    return CountedSeries(count, tuple(list(by_key).index(plan.by) for plan in plans))


def bring(count: Count, state: State, time: int, puts: Sequence[Put]) -> Sequence[Any]:
    """Brings a record of event time `time` (µs), as known at one moment, to several series."""
    return count(
        state.payment, state.decision, state.data, state.environment, state.label, time, puts
    )


def elements_of(count: Count, puts: int, state: State | None) -> dict[int, list[tuple[Group, Any]]]:
    """The elements that a record brings to each of so many series, by its index."""
    found: dict[int, list[tuple[Group, Any]]] = {}

    def noting(index: int) -> Put:
        return lambda _time, group, value: found.setdefault(index, []).append((group, value))

    if state is not None:
        noted = tuple(map(noting, range(puts)))
        bring(count, state, 0, noted)
    return found
