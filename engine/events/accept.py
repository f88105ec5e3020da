"""The steps of an event: windows count it, its metrics are read, its monitors are evaluated.

`keep` then puts it into the journal, and its alerts into the outbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.events.submission import Event
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending
from tollkeeper.engine.labels.label import SOURCES, Label, LabelSource
from tollkeeper.engine.labels.set_label import count_label
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.monitors.states import transitions_at
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.programs.event_type import GivenLabel, LoadedEventType
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import StoredEvent, encode_stored
from tollkeeper.engine.velocity.contract import Observation, Record, State


class Arrival(Struct, frozen=True, gc=False):
    """Stands for a payment's facts where the monitors of an event's type expect them."""

    arrived: int


@dataclass(frozen=True, slots=True)
class EventReceipt:
    """An event, its metrics' values, and the monitors that raised an alert."""

    id: str
    type: str
    version: int
    metrics: dict[str, JsonValue]
    alerts: tuple[str, ...]


class AcceptedEvent(NamedTuple):
    """The response to an event that is still to be kept."""

    pending: Pending
    accepted: EventReceipt


async def accept_event(
    engine: Engine, active: ActivePrograms, event: Event, arrived: int
) -> AcceptedEvent:
    """Count an event and evaluate its monitors. `arrived` in µs since the epoch.

    Raises `Taken` for an id in use, `Invalid` where its label can't be given.
    """
    account, loaded = active.account.number, event.loaded
    if await engine.journal.exists(account, Kind.EVENT, event.id):
        raise Taken(event.id)
    facts, name = Arrival(arrived), loaded.program.name
    record = Record(account, event.id, event.timestamp, arrived, State(data=event.data), event=name)
    observed = await engine.windows.observe(
        record, loaded.reading.reads(facts, event.data, active.environment)
    )
    try:
        transitions = transitions_at(
            engine.monitors.states,
            account,
            loaded,
            event.timestamp,
            facts,
            event.data,
            observed.values,
            active.environment,
        )
        accepted = EventReceipt(
            id=event.id,
            type=name,
            version=loaded.version,
            metrics=metrics_of(loaded, observed),
            alerts=tuple(transition.monitor for transition in transitions if transition.met),
        )
        entry = Entry(
            sequence=observed.sequence,
            account=account,
            kind=Kind.EVENT,
            id=event.id,
            arrived=arrived,
            time=event.timestamp,
            body=encode_stored(StoredEvent(name, loaded.version, event.kept)),
            outcome=encode_stored(EventOutcome(observed.values, transitions)),
        )
        given = loaded.label_given(facts, event.data, observed.values, active.environment)
        label = None if given is None else await _count_label(engine, entry, name, given)
    except BaseException:
        await engine.windows.withdraw(observed)
        raise
    return AcceptedEvent(Pending(observed, entry, transitions, label), accepted)


async def _count_label(
    engine: Engine, event: Entry, type_: str, given: GivenLabel
) -> Pending | None:
    """Count the label that an event gives to a payment; None when no payment has the id, or has the
    label already. Raises `Invalid`."""
    known = await engine.journal.first_and_last(event.account, given.payment)
    if known is None:
        return None
    source: LabelSource = type_ if type_ in SOURCES else "import"
    label = Label(source, given.label, event.time, event.id)
    try:
        return await count_label(engine, *known, label, event.arrived)
    except Invalid as refused:
        wrong = [replace(each, field="event.data") for each in refused.violations]
        raise Invalid(wrong) from None


def metrics_of(loaded: LoadedEventType, observed: Observation) -> dict[str, JsonValue]:
    """Each metric's value for the event's own keys."""
    values = observed.values
    return {
        each.name: None if (value := values[each.index]) is None else each.to_json(value)
        for each in loaded.metrics
    }
