"""Transitions of monitors between met and not met; those to met are alerts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.grammar.program import Value


class Transition(Struct, frozen=True, omit_defaults=True):
    """A monitor's condition became met for one key, which is an alert, or stopped being met.

    `at` is the event time (µs). `values` holds what the condition read, by the text that names it.
    `merchant_part` is the index in `key` of the merchant, where the condition reads that merchant's
    records alone; else None.
    """

    type: str
    monitor: str
    key: tuple[JsonValue, ...]
    at: int
    met: bool
    title: str | None = None
    values: dict[str, JsonValue] = {}
    merchant_part: int | None = None

    @property
    def merchant(self) -> JsonValue:
        """The one merchant whose records the condition reads, None where it reads others' too."""
        part = self.merchant_part
        return self.key[part] if part is not None and part < len(self.key) else None


class EventOutcome(Struct, frozen=True, omit_defaults=True):
    """The outcome of an event in the journal: the aggregates read, and the monitors' transitions."""

    reads: tuple[Value | None, ...] = ()
    transitions: tuple[Transition, ...] = msgspec.field(default=(), name="turns")


class WatchedDecision(Decision, frozen=True, omit_defaults=True):
    """The outcome of a payment in the journal, when monitors made transitions at it."""

    transitions: tuple[Transition, ...] = msgspec.field(default=(), name="turns")


class _Outcome(Struct, frozen=True):
    transitions: tuple[Transition, ...] = msgspec.field(default=(), name="turns")


_decode_outcome = msgspec.json.Decoder(_Outcome).decode


def has_transitions(outcome: bytes | None) -> bool:
    """Whether there may be transitions in the outcome of a journal entry of any kind."""
    return outcome is not None and b'"turns"' in outcome


def transitions_of(outcome: bytes | None) -> tuple[Transition, ...]:
    """The monitors' transitions in the outcome of a journal entry of any kind."""
    if outcome is None or not has_transitions(outcome):
        return ()
    return _decode_outcome(outcome).transitions


def add_transitions(decision: Decision, transitions: Sequence[Transition]) -> Decision:
    """The decision together with the transitions that monitors made at the payment."""
    return (
        WatchedDecision(**structs.asdict(decision), transitions=tuple(transitions))
        if transitions
        else decision
    )
