"""What a record brings to a series: its group, and the value of each of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tollkeeper.engine.windows.contract import Key, SeriesPlan, State
from tollkeeper.grammar.program import Value

Group: TypeAlias = Value | Key
"""A key as it is held: a key of one part is that part, which takes less memory."""


def group_of(key: Key) -> Group:
    """The group that a key names."""
    return key[0] if len(key) == 1 else key


def elements(plan: SeriesPlan, state: State | None) -> tuple[Group | None, Sequence[Any]]:
    """The group and the values that count; no group when a key is missing or there is no record."""
    if state is None:
        return None, ()
    key = plan.compiled.key(state.payment, state.decision, state.data)
    if key is None:
        return None, ()
    values = plan.compiled.values(state.payment, state.decision, state.data)
    if None in values and not plan.missing:
        values = [value for value in values if value is not None]
    return group_of(key), values
