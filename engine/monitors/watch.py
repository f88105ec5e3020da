"""Monitors at work: how each one stands for each key, and when it turns.

A turn to met is an alert. Within the cool-down after a key's last alert a condition that is met
turns nothing; when it is still met at the first record after that, it does. How things stand is
what the journal's turns add up to: turns are added as they are decided, and taken back when their
record could not be kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableSet, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.monitors.alerts import Turn
from tollkeeper.engine.programs.event_type import LoadedEventType, LoadedMonitor
from tollkeeper.engine.programs.json_values import JsonValue, json_value
from tollkeeper.grammar.program import Value

NEVER = -(10**18)
"""Earlier (µs) than every instant."""

Of: TypeAlias = tuple[int, str, str, tuple[JsonValue, ...]]
"""An account, a type, a monitor of it, and a key."""


class Standing(NamedTuple):
    """Since the record at `sequence`; `alerted` is the event time (µs) of the last alert."""

    sequence: int
    met: bool
    alerted: int


@dataclass
class Standings:
    """How every monitor stands for every key that it ever turned for.

    `_known` holds the newest standing last; the others are for taking it back. `_turned` are the
    monitors that ever turned for any key: account, type and name.
    """

    _known: dict[Of, tuple[Standing, ...]] = field(default_factory=dict)
    _turned: MutableSet[tuple[int, str, str]] = field(default_factory=set)

    def has_turned(self, account: int, type_: str, monitor: str) -> bool:
        """Whether there may be a key for which the monitor stands in any way."""
        return (account, type_, monitor) in self._turned

    def of(self, key: Of) -> Standing | None:
        known = self._known.get(key)
        return known[-1] if known else None

    def set(self, key: Of, standing: Standing) -> None:
        """A standing that is in the journal."""
        self._know(key, (standing,))

    def add(self, account: int, sequence: int, turns: Iterable[Turn]) -> None:
        """Turns of the record at `sequence`, which is about to be kept."""
        for turn in turns:
            key = (account, turn.type, turn.monitor, turn.key)
            known = self._known.get(key, ())
            self._know(key, (*known, _after(known[-1] if known else None, sequence, turn)))

    def settle(self, account: int, sequence: int, turns: Iterable[Turn]) -> None:
        """The record at `sequence` is kept."""
        for turn in turns:
            key = (account, turn.type, turn.monitor, turn.key)
            known = self._known.get(key, ())
            self._known[key] = tuple(each for each in known if each.sequence >= sequence)

    def take_back(self, account: int, sequence: int, turns: Iterable[Turn]) -> None:
        """The record at `sequence` could not be kept."""
        for turn in turns:
            key = (account, turn.type, turn.monitor, turn.key)
            left = tuple(each for each in self._known.pop(key, ()) if each.sequence != sequence)
            if left:
                self._known[key] = left

    def forget(self, gone: Iterable[Of]) -> None:
        """Nothing is known of these keys any more."""
        for key in gone:
            self._known.pop(key, None)

    def replay(self, account: int, sequence: int, turns: Iterable[Turn]) -> None:
        """Turns that the journal holds, in its order."""
        for turn in turns:
            key = (account, turn.type, turn.monitor, turn.key)
            self._know(key, (_after(self.of(key), sequence, turn),))

    def _know(self, key: Of, standings: tuple[Standing, ...]) -> None:
        self._known[key] = standings
        self._turned.add(key[:3])


@dataclass
class Watch:
    """What is known of an engine's monitors.

    All turns up to sequence number `noted` are in the list and the outbox, as far as these
    remember; `open` are the sequence numbers of records whose turns are not there yet. `raised` is
    set whenever there is something new in the outbox.
    """

    standings: Standings = field(default_factory=Standings)
    noted: int = 0
    open: set[int] = field(default_factory=set)
    raised: asyncio.Event = field(default_factory=asyncio.Event)


def _after(before: Standing | None, sequence: int, turn: Turn) -> Standing:
    return Standing(
        sequence, turn.met, turn.at if turn.met else before.alerted if before else NEVER
    )


def turns_at(
    standings: Standings,
    account: int,
    loaded: LoadedEventType,
    at: int,
    facts: Any,
    data: Any,
    values: Sequence[Value | None],
    environment: Environment,
) -> tuple[Turn, ...]:
    """How the type's monitors turn with a record of event time `at` (µs) that read `values`."""
    turns = []
    type_name = loaded.program.name
    for monitor in loaded.monitors:
        met = monitor.compiled.when(facts, data, values, environment) is True
        if not met and not standings.has_turned(account, type_name, monitor.name):
            continue
        parts = monitor.key(facts, data)
        if parts is None:
            continue
        key = tuple(map(json_value, parts, monitor.key_types))
        standing = standings.of((account, type_name, monitor.name, key))
        if _turns(monitor, standing, met, at):
            shown = (
                {w: json_value(values[i], type_) for w, i, type_ in monitor.shows} if met else {}
            )
            turns.append(Turn(type_name, monitor.name, key, at, met, monitor.title, shown))
    return tuple(turns)


def _turns(monitor: LoadedMonitor, standing: Standing | None, met: bool, at: int) -> bool:
    if standing is None:
        return met
    if standing.met == met:
        return False
    return not met or monitor.every is None or at >= standing.alerted + monitor.every
