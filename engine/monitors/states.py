"""The state of each monitor for each key (met or not met), and the transitions between the two.

A transition to met is an alert. During the cool-down after a key's last alert there is no alert,
even if the condition is met; if it is still met at the first record after the cool-down, there is
one. The states are folded from the journal's transitions: added as they are decided, and undone
when their record could not be kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableSet, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.programs.event_type import LoadedEventType, LoadedMonitor
from tollkeeper.engine.programs.json_values import JsonValue, json_value
from tollkeeper.grammar.program import Value

NEVER = -(10**18)
"""An instant (µs) before all others."""

MonitorKey: TypeAlias = tuple[int, str, str, tuple[JsonValue, ...]]
"""An account, a type, a monitor of it, and a key."""


class MonitorState(NamedTuple):
    """A monitor's state for one key since the record at `sequence`; `alerted` is the event time
    (µs) of the key's last alert."""

    sequence: int
    met: bool
    alerted: int


@dataclass
class MonitorStates:
    """Every monitor's state for every key with a transition.

    `_states` holds a key's states, the newest last; the older ones are there to undo transitions
    whose record is still being written. `_with_transitions` are the monitors (account, type, name)
    with any.
    """

    _states: dict[MonitorKey, tuple[MonitorState, ...]] = field(default_factory=dict)
    _with_transitions: MutableSet[tuple[int, str, str]] = field(default_factory=set)

    def has_transitions(self, account: int, type_: str, monitor: str) -> bool:
        """Whether the monitor ever made a transition for any key."""
        return (account, type_, monitor) in self._with_transitions

    def of(self, key: MonitorKey) -> MonitorState | None:
        known = self._states.get(key)
        return known[-1] if known else None

    def set(self, key: MonitorKey, state: MonitorState) -> None:
        """Set the state as the journal holds it."""
        self._set(key, (state,))

    def add(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of the record at `sequence`, which is about to be written."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            known = self._states.get(key, ())
            self._set(
                key, (*known, _next_state(known[-1] if known else None, sequence, transition))
            )

    def settle(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Make transitions final: the record at `sequence` is on disk."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            known = self._states.get(key, ())
            self._states[key] = tuple(each for each in known if each.sequence >= sequence)

    def undo(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Take transitions back: the record at `sequence` could not be written."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            left = tuple(each for each in self._states.pop(key, ()) if each.sequence != sequence)
            if left:
                self._states[key] = left

    def forget(self, gone: Iterable[MonitorKey]) -> None:
        """Delete the states for these keys."""
        for key in gone:
            self._states.pop(key, None)

    def forget_account(self, account: int) -> None:
        """Delete the states of all of the account's monitors."""
        self.forget([key for key in self._states if key[0] == account])
        self._with_transitions -= {of for of in self._with_transitions if of[0] == account}

    def replay(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply transitions read from the journal, in its order."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            self._set(key, (_next_state(self.of(key), sequence, transition),))

    def _set(self, key: MonitorKey, states: tuple[MonitorState, ...]) -> None:
        self._states[key] = states
        self._with_transitions.add(key[:3])


@dataclass
class Monitors:
    """The monitors' state in a running engine.

    Transitions up to sequence number `noted` have been entered into alerts and outbox. `open` are
    the sequence numbers of records whose transitions are not there yet, `missed` those that could
    not be entered, with their account and transitions. `raised` is set whenever the outbox has new
    notices.
    """

    states: MonitorStates = field(default_factory=MonitorStates)
    noted: int = 0
    open: set[int] = field(default_factory=set)
    missed: dict[int, tuple[int, Sequence[Transition]]] = field(default_factory=dict)
    raised: asyncio.Event = field(default_factory=asyncio.Event)


def _next_state(before: MonitorState | None, sequence: int, transition: Transition) -> MonitorState:
    return MonitorState(
        sequence,
        transition.met,
        transition.at if transition.met else before.alerted if before else NEVER,
    )


def transitions_at(
    states: MonitorStates,
    account: int,
    loaded: LoadedEventType,
    at: int,
    facts: Any,
    data: Any,
    values: Sequence[Value | None],
    environment: Environment,
) -> tuple[Transition, ...]:
    """The transitions of the type's monitors at a record of event time `at` (µs)."""
    transitions = []
    type_name = loaded.program.name
    for monitor in loaded.monitors:
        met = monitor.compiled.when(facts, data, values, environment) is True
        if not met and not states.has_transitions(account, type_name, monitor.name):
            continue
        parts = monitor.key(facts, data, environment)
        if parts is None:
            continue
        key = tuple(map(json_value, parts, monitor.key_types))
        state = states.of((account, type_name, monitor.name, key))
        if _is_transition(monitor, state, met, at):
            shown = (
                {w: json_value(values[i], type_) for w, i, type_ in monitor.shows} if met else {}
            )
            transitions.append(
                Transition(
                    type_name,
                    monitor.name,
                    key,
                    at,
                    met,
                    monitor.title,
                    shown,
                    monitor.merchant_part,
                )
            )
    return tuple(transitions)


def _is_transition(monitor: LoadedMonitor, state: MonitorState | None, met: bool, at: int) -> bool:
    if state is None:
        return met
    if state.met == met:
        return False
    return not met or monitor.every is None or at >= state.alerted + monitor.every
