"""What a record brings to a series: its group, and the value of each of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.windows.contract import Key, SeriesPlan, State
from tollkeeper.grammar.program import Value

Group: TypeAlias = Value | Key
"""A key as it is held: a key of one part is that part, which takes less memory."""


def group_of(key: Key) -> Group:
    """The group that a key names."""
    return key[0] if len(key) == 1 else key


class Grouped(NamedTuple):
    """A record, and its group in the series that share a key."""

    group: Group
    state: State


def grouped(plan: SeriesPlan, state: State) -> Grouped | None:
    """The record in its group; None when a part of the key is missing."""
    key = plan.compiled.key(state.payment, state.decision, state.data)
    return None if key is None else Grouped(key[0] if len(key) == 1 else key, state)


def values_in(plan: SeriesPlan, state: State) -> Sequence[Any]:
    """The values of a record that count."""
    values = plan.compiled.values(state.payment, state.decision, state.data)
    if None in values and not plan.missing:
        return [value for value in values if value is not None]
    return values
