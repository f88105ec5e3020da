"""What monitors tell: their changes between met and not met, and the alerts among these."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.grammar.program import Value


class Turn(Struct, frozen=True, omit_defaults=True):
    """A monitor's condition turned for one key: to met, which is an alert, or back.

    `at` is the event time (µs), `values` what the condition read, by its own words.
    """

    type: str
    monitor: str
    key: tuple[JsonValue, ...]
    at: int
    met: bool
    title: str | None = None
    values: dict[str, JsonValue] = {}


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
