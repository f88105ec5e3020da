"""What monitors tell: their changes between met and not met, and the alerts among these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value

Shown: TypeAlias = str | int | float | bool | None
"""A value as JSON shows it; see `show`."""


class Turn(Struct, frozen=True, omit_defaults=True):
    """A monitor's condition turned for one key: to met, which is an alert, or back.

    `at` is the event time (µs), `values` what the condition read, by its own words.
    """

    type: str
    monitor: str
    key: tuple[Shown, ...]
    at: int
    met: bool
    title: str | None = None
    values: dict[str, Shown] = {}


class EventOutcome(Struct, frozen=True, omit_defaults=True):
    """What the journal keeps beside an event: the aggregates read, and the monitors that turned."""

    reads: tuple[Value | None, ...] = ()
    turns: tuple[Turn, ...] = ()


class WatchedDecision(Decision, frozen=True, omit_defaults=True):
    """A payment's decision as the journal keeps it when a monitor of payments turned."""

    turns: tuple[Turn, ...] = ()


class _Turned(Struct, frozen=True):
    turns: tuple[Turn, ...] = ()


_turned = msgspec.json.Decoder(_Turned).decode


def turns_of(outcome: bytes | None) -> tuple[Turn, ...]:
    """The turns in the outcome of a journal's entry, whatever kind of entry it is."""
    if outcome is None or b'"turns"' not in outcome:
        return ()
    return _turned(outcome).turns


def watched(decision: Decision, turns: Sequence[Turn]) -> Decision:
    """The decision with the turns that came of it."""
    return WatchedDecision(**structs.asdict(decision), turns=tuple(turns)) if turns else decision


def show(value: Any, type_: t.Type) -> Shown:
    """A carried value as JSON: an instant as RFC 3339, an address as text, a duration in seconds."""
    return None if value is None else shower(type_)(value)


def shower(type_: t.Type) -> Callable[[Any], Shown]:
    """`show` for the values of a type that are there."""
    match type_:
        case t.Number(scale=None):
            return float
        case t.Number(scale=0):
            return int
        case t.Number(scale=int(scale)):
            return partial(_decimal, scale)
        case t.Ip():
            return _address
        case t.Instant():
            return show_instant
        case t.Duration():
            return partial(_decimal, 6)
        case t.Boolean():
            return bool
        case _:
            return str


def _address(value: int) -> str:
    return show_network(value, IP_BITS)


def _decimal(scale: int, value: int) -> int | float:
    exact = Decimal(value).scaleb(-scale)
    return int(exact) if exact == int(exact) else float(exact)
