"""The state of each monitor for each key (met or not met), and the transitions between the two.

A transition to met is an alert. During the cool-down after a key's last alert there is no alert,
even if the condition is met; if it is still met at the first record after the cool-down, there is
one. The states are folded from the journal's transitions: added as they are decided, and undone
when their record could not be kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.programs.event_type import LoadedEventType
from tollkeeper.engine.programs.json_values import JsonValue, json_value
from tollkeeper.grammar.program import Value

NEVER = -(10**18)
"""An instant (µs) before all others."""

MAX_STATES = 100_000
"""The most states that an account's monitors have together. Of a key that is forgotten beyond it, a
monitor that is still met raises another alert."""

AlertKey: TypeAlias = tuple[JsonValue, ...]
MonitorKey: TypeAlias = tuple[int, str, str, AlertKey]
"""An account, a type, a monitor of it, and a key."""


class MonitorState(NamedTuple):
    """A monitor's state for one key since the record at `sequence`; `alerted` is the event time
    (µs) of the key's last alert."""

    sequence: int
    met: bool
    alerted: int


@dataclass
class MonitorStates:
    """Every monitor's state for every key, as far as it differs from having none.

    `_accounts` holds, by account and by type and monitor, the states of each key, the newest last;
    the older ones are kept to undo transitions while their record is being written. The key that
    changed last comes last.
    """

    _accounts: dict[int, dict[tuple[str, str], dict[AlertKey, tuple[MonitorState, ...]]]] = field(
        default_factory=dict
    )

    def has_any(self, account: int, type_: str, monitor: str) -> bool:
        """Whether the monitor has a state for any key."""
        return bool(self._of_monitor(account, type_, monitor))

    def of(self, key: MonitorKey) -> MonitorState | None:
        """The state for a key, None without one."""
        states = self._states_of(key)
        return states[-1] if states else None

    def set(self, key: MonitorKey, state: MonitorState) -> None:
        """Set the state as the journal holds it."""
        self._set(key, (state,))

    def add(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of the record at `sequence`, which is about to be written."""
        for transition in transitions:
            key = _key_of(account, transition)
            states = self._states_of(key)
            before = states[-1] if states else None
            self._set(key, (*states, _next_state(before, sequence, transition)))

    def settle(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Make transitions final: the record at `sequence` is on disk."""
        for transition in transitions:
            keys = self._of_monitor(account, transition.type, transition.monitor)
            if states := keys.get(transition.key):
                left = tuple(each for each in states if each.sequence >= sequence)
                keys[transition.key] = left or states[-1:]

    def undo(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Take transitions back: the record at `sequence` could not be written."""
        for transition in transitions:
            keys = self._of_monitor(account, transition.type, transition.monitor)
            states = keys.pop(transition.key, ())
            if left := tuple(each for each in states if each.sequence != sequence):
                keys[transition.key] = left

    def forget(self, keys: Iterable[MonitorKey]) -> None:
        """Delete the states for these keys."""
        for account, type_, monitor, key in keys:
            self._of_monitor(account, type_, monitor).pop(key, None)

    def forget_account(self, account: int) -> None:
        """Delete the states of all of the account's monitors."""
        self._accounts.pop(account, None)

    def forget_excess(self, account: int) -> list[MonitorKey]:
        """While the account has more than `MAX_STATES`, forget those states of the monitor with the
        most that changed longest ago; returns their keys.
        """
        forgotten: list[MonitorKey] = []
        monitors = self._accounts.get(account, {})
        while sum(map(len, monitors.values())) > MAX_STATES:
            (type_, monitor), keys = max(monitors.items(), key=lambda item: len(item[1]))
            # Many at once: finding that monitor visits every monitor.
            oldest = list(islice(keys, max(1, min(len(keys) // 2, MAX_STATES // 100))))
            forgotten += [(account, type_, monitor, key) for key in oldest]
            for key in oldest:
                del keys[key]
        return forgotten

    def without_meaning(
        self, account: int, cool_downs: Mapping[tuple[str, str], int], now: int
    ) -> Iterator[tuple[MonitorKey, MonitorState]]:
        """The states, with their keys, that mean the same as having none: not met, and from `now` (µs)
        on, no cool-down holds an alert back. `cool_downs` (µs) are by type and monitor.
        """
        for (type_, monitor), keys in self._accounts.get(account, {}).items():
            until = now - cool_downs[type_, monitor]
            for key, states in keys.items():
                if len(states) == 1 and not states[0].met and states[0].alerted <= until:
                    yield (account, type_, monitor, key), states[0]

    def replay(self, account: int, sequence: int, transitions: Iterable[Transition]) -> None:
        """Apply transitions read from the journal, in its order."""
        for transition in transitions:
            key = _key_of(account, transition)
            self._set(key, (_next_state(self.of(key), sequence, transition),))

    def _of_monitor(
        self, account: int, type_: str, monitor: str
    ) -> dict[AlertKey, tuple[MonitorState, ...]]:
        return self._accounts.get(account, {}).get((type_, monitor), {})

    def _states_of(self, key: MonitorKey) -> tuple[MonitorState, ...]:
        account, type_, monitor, alert_key = key
        return self._of_monitor(account, type_, monitor).get(alert_key, ())

    def _set(self, key: MonitorKey, states: tuple[MonitorState, ...]) -> None:
        account, type_, monitor, alert_key = key
        keys = self._accounts.setdefault(account, {}).setdefault((type_, monitor), {})
        keys.pop(alert_key, None)
        keys[alert_key] = states


@dataclass
class Monitors:
    """The monitors' state in a running engine.

    Transitions up to sequence number `entered` have been entered into the outbox. `open` are
    the sequence numbers of records whose transitions are not there yet, `missed` those that could
    not be entered, with their account and transitions. `raised` is set whenever the outbox has new
    notices.
    """

    states: MonitorStates = field(default_factory=MonitorStates)
    entered: int = 0
    open: set[int] = field(default_factory=set)
    missed: dict[int, tuple[int, Sequence[Transition]]] = field(default_factory=dict)
    raised: asyncio.Event = field(default_factory=asyncio.Event)


def _key_of(account: int, transition: Transition) -> MonitorKey:
    return account, transition.type, transition.monitor, transition.key


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
        name = monitor.program.name
        met = monitor.when(facts, data, values, environment) is True
        if not met and not states.has_any(account, type_name, name):
            continue
        parts = monitor.key(facts, data, environment)
        if parts is None:
            continue
        key = tuple(map(json_value, parts, monitor.key_types))
        state = states.of((account, type_name, name, key))
        if _is_transition(monitor.program.every, state, met, at):
            shown = (
                {words: json_value(values[index], type_) for words, index, type_ in monitor.shows}
                if met
                else {}
            )
            transitions.append(
                Transition(
                    type_name,
                    name,
                    key,
                    at,
                    met,
                    monitor.program.title,
                    shown,
                    monitor.merchant_part,
                )
            )
    return tuple(transitions)


def _is_transition(every: int | None, state: MonitorState | None, met: bool, at: int) -> bool:
    """`every` is the cool-down in µs, None for none."""
    if state is None:
        return met
    if state.met == met:
        return False
    return not met or every is None or at >= state.alerted + every
