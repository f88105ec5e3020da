"""The elements that a record adds to series: each has a group and a value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

from tollkeeper.engine.velocity.contract import (
    Count,
    CountedSeries,
    Group,
    Key,
    Put,
    SeriesPlan,
    State,
)

Element: TypeAlias = tuple[Group, Any]
"""A group and a value."""


def group_of(key: Key) -> Group:
    """The group of a key."""
    return key[0] if len(key) == 1 else key


def plan_counting(
    plans: Sequence[SeriesPlan],
) -> list[tuple[CountedSeries, tuple[SeriesPlan, ...]]]:
    """The functions that count all these series: one for the series that share a `counting`, one for
    those without."""
    by_counting: defaultdict[int, list[SeriesPlan]] = defaultdict(list)
    for plan in plans:
        by_counting[id(plan.counting)].append(plan)
    functions = []
    for members in by_counting.values():
        counting = members[0].counting
        if counting is None:
            counted = _count_one_by_one(members)
        else:
            counted = counting(tuple(plan.digest for plan in members))
        functions.append((counted, tuple(members)))
    return functions


def _count_one_by_one(plans: Sequence[SeriesPlan]) -> CountedSeries:
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
        own_keys = [key_of(p, d, v, e, y) for key_of in keys]
        groups = [None if key is None else group_of(key) for key in own_keys]
        for group, members in zip(groups, members_of, strict=True):
            if group is None:
                continue
            for index, values_of, missing in members:
                for value in values_of(p, d, v, e, y):
                    if missing or value is not None:
                        puts[index](time, group, value)
        return groups

    positions = tuple(list(by_key).index(plan.by) for plan in plans)
    return CountedSeries(positions, count, lambda: count)


def add_record(count: Count, state: State, time: int, puts: Sequence[Put]) -> Sequence[Any]:
    """Add a record's elements, of event time `time` (µs), to several series; returns its groups."""
    return count(
        state.payment, state.decision, state.data, state.environment, state.label, time, puts
    )


def elements_of(count: Count, puts: int, state: State | None) -> dict[int, list[Element]]:
    """The elements that a record adds to each of `puts` series, by the series' index."""
    elements: dict[int, list[Element]] = {}

    def collect(index: int) -> Put:
        return lambda _time, group, value: elements.setdefault(index, []).append((group, value))

    if state is not None:
        add_record(count, state, 0, tuple(map(collect, range(puts))))
    return elements
