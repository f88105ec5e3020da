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


class Standing(NamedTuple):
    """A monitor's state for one key since the record at `sequence`; `alerted` is the event time
    (µs) of the key's last alert."""

    sequence: int
    met: bool
    alerted: int


@dataclass
class Standings:
    """Every monitor's state for every key with a transition.

    `_standings` holds a key's states, the newest last; the older ones are there to undo transitions
    whose record is still being written. `_with_transitions` are the monitors (account, type, name)
    with any.
    """

    _standings: dict[MonitorKey, tuple[Standing, ...]] = field(default_factory=dict)
    _with_transitions: MutableSet[tuple[int, str, str]] = field(default_factory=set)

    def has_transitions(self, account: int, type_: str, monitor: str) -> bool:
        """Whether the monitor ever made a transition for any key."""
        return (account, type_, monitor) in self._with_transitions

    def of(self, key: MonitorKey) -> Standing | None:
        known = self._standings.get(key)
        return known[-1] if known else None

    def set(self, key: MonitorKey, standing: Standing) -> None:
        """Set the state as the journal holds it."""
        self._set(key, (standing,))

    def add(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of the record at `sequence`, which is about to be written."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            known = self._standings.get(key, ())
            self._set(
                key, (*known, _next_standing(known[-1] if known else None, sequence, transition))
            )

    def settle(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Make transitions final: the record at `sequence` is on disk."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            known = self._standings.get(key, ())
            self._standings[key] = tuple(each for each in known if each.sequence >= sequence)

    def undo(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Take transitions back: the record at `sequence` could not be written."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            left = tuple(each for each in self._standings.pop(key, ()) if each.sequence != sequence)
            if left:
                self._standings[key] = left

    def forget(self, gone: Iterable[MonitorKey]) -> None:
        """Delete the states for these keys."""
        for key in gone:
            self._standings.pop(key, None)

    def forget_account(self, account: int) -> None:
        """Delete the states of all of the account's monitors."""
        self.forget([key for key in self._standings if key[0] == account])
        self._with_transitions -= {of for of in self._with_transitions if of[0] == account}

    def replay(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply transitions read from the journal, in its order."""
        for transition in transitions:
            key = (account, transition.type, transition.monitor, transition.key)
            self._set(key, (_next_standing(self.of(key), sequence, transition),))

    def _set(self, key: MonitorKey, standings: tuple[Standing, ...]) -> None:
        self._standings[key] = standings
        self._with_transitions.add(key[:3])


@dataclass
class Watch:
    """The monitors' state in a running engine.

    Transitions up to sequence number `noted` have been entered into alerts and outbox. `open` are
    the sequence numbers of records whose transitions are not there yet, `missed` those that could
    not be entered, with their account and transitions. `raised` is set whenever the outbox has new
    notices.
    """

    standings: Standings = field(default_factory=Standings)
    noted: int = 0
    open: set[int] = field(default_factory=set)
    missed: dict[int, tuple[int, Sequence[Transition]]] = field(default_factory=dict)
    raised: asyncio.Event = field(default_factory=asyncio.Event)


def _next_standing(before: Standing | None, sequence: int, transition: Transition) -> Standing:
    return Standing(
        sequence,
        transition.met,
        transition.at if transition.met else before.alerted if before else NEVER,
    )


def transitions_at(
    standings: Standings,
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
        if not met and not standings.has_transitions(account, type_name, monitor.name):
            continue
        parts = monitor.key(facts, data, environment)
        if parts is None:
            continue
        key = tuple(map(json_value, parts, monitor.key_types))
        standing = standings.of((account, type_name, monitor.name, key))
        if _is_transition(monitor, standing, met, at):
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


def _is_transition(monitor: LoadedMonitor, standing: Standing | None, met: bool, at: int) -> bool:
    if standing is None:
        return met
    if standing.met == met:
        return False
    return not met or monitor.every is None or at >= standing.alerted + monitor.every
