"""The way of one event: windows, metrics, monitors, journal, outbox."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import Struct

from tollkeeper.engine.decide import encode, keep
from tollkeeper.engine.events.stored import Kept
from tollkeeper.engine.events.submission import Event
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind
from tollkeeper.engine.monitors.alerts import EventOutcome, Shown
from tollkeeper.engine.monitors.watch import turns_at
from tollkeeper.engine.programs.active import InForce
from tollkeeper.engine.programs.event_type import LoadedEventType
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation, Record, State

Answer = Callable[["Accepted"], Idempotency | None]


class Arrival(Struct, frozen=True, gc=False):
    """All that a monitor of an event's own type needs in place of a payment's facts."""

    arrived: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event, its metrics' values, and the monitors that raised an alert."""

    id: str
    type: str
    version: int
    metrics: dict[str, Shown]
    alerts: tuple[str, ...]


async def accept(
    engine: Engine, force: InForce, event: Event, arrived: int, answer: Answer | None = None
) -> Accepted:
    """Count and keep an event; done when it is on disk and its alerts are in the outbox.

    `arrived` in µs since the epoch; `answer`, when given, makes what is kept for the request's
    idempotency key. Raises `Taken` for an id in use, `Unavailable` or `Overloaded` when the event
    can't be kept; nothing of it is left then.
    """
    account, loaded = force.account.number, event.loaded
    if await engine.journal.exists(account, Kind.EVENT, event.id):
        raise Taken(event.id)
    facts, name = Arrival(arrived), loaded.program.name
    record = Record(account, event.id, event.timestamp, arrived, State(data=event.data), event=name)
    observed = await engine.windows.observe(record, loaded.reads(facts, event.data))
    turns = turns_at(
        engine.watch.standings,
        account,
        loaded,
        event.timestamp,
        facts,
        event.data,
        observed.values,
        force.environment,
    )
    accepted = Accepted(
        id=event.id,
        type=name,
        version=loaded.version,
        metrics=metrics_of(loaded, observed),
        alerts=tuple(turn.monitor for turn in turns if turn.met),
    )
    entry = Entry(
        sequence=observed.sequence,
        account=account,
        kind=Kind.EVENT,
        id=event.id,
        arrived=arrived,
        time=event.timestamp,
        body=encode(Kept(name, loaded.version, event.kept)),
        outcome=encode(EventOutcome(observed.values, turns)),
    )
    await keep(engine, observed, entry, answer and answer(accepted), turns)
    return accepted


def metrics_of(loaded: LoadedEventType, observed: Observation) -> dict[str, Shown]:
    """Each metric's value for the event's own keys."""
    values = observed.values
    return {
        each.name: None if (value := values[each.index]) is None else each.show(value)
        for each in loaded.metrics
    }
