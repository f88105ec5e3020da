"""Values as programs carry them, written as JSON has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.engine.programs.compile.reckoning import lift
from tollkeeper.grammar import types as t

JsonValue: TypeAlias = str | int | float | bool | None
_SECONDS = t.Number(6)
"""A duration's microseconds as seconds."""


def json_value(value: Any, type_: t.Type) -> JsonValue:
    """A carried value as JSON: an instant as RFC 3339, an address as text, a duration in seconds."""
    return None if value is None else json_writer(type_)(value)


def json_writer(type_: t.Type) -> Callable[[Any], JsonValue]:
    """`json_value` for the values of a type that are there."""
    match type_:
        case t.Number(scale=None):
            return float
        case t.Number(scale=0):
            return int
        case t.Number():
            return partial(_decimal, type_)
        case t.Ip():
            return partial(show_network, bits=IP_BITS)
        case t.Instant():
            return show_instant
        case t.Duration():
            return partial(_decimal, _SECONDS)
        case t.Boolean():
            return bool
        case _:
            return str


def _decimal(kind: t.Number, value: int) -> int | float:
    exact = lift(value, kind)
    return int(exact) if exact == int(exact) else float(exact)
