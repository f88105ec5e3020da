"""The steps of an event: windows count it, its metrics are read, its monitors are evaluated.

`keep` then puts it into the journal, and its alerts into the outbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.events.submission import Event, not_active
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending
from tollkeeper.engine.labels.label import SOURCES, Label, LabelSource
from tollkeeper.engine.labels.set_label import PaymentToLabel, count_label, read_to_label
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.monitors.states import transitions_at
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.programs.event_type import GivenLabel, LoadedEventType
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import StoredEvent, encode_stored
from tollkeeper.engine.velocity.contract import NotWholeError, Observation, Record, State


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


@asynccontextmanager
async def counted_event(
    engine: Engine, active: ActivePrograms, event: Event, arrived: int
) -> AsyncIterator[AcceptedEvent]:
    """An event, counted and its monitors evaluated, to be kept within the block: until its end
    nothing else changes the payments that it may label. `arrived` in µs since the epoch.

    Raises `Taken` for an id in use, `Invalid` where its label can't be given or its type is
    withdrawn meanwhile.
    """
    account = active.account.number
    # A second event with the id waits: it is refused, and its label must not be kept either.
    async with engine.locks.of("event", account, event.id):
        if await engine.journal.exists(account, Kind.EVENT, event.id):
            raise Taken(event.id)
        ids = event.loaded.payments_named(Arrival(arrived), event.data, active.environment)
        while True:
            async with _labelled(engine, account, ids) as payments:
                counted = await _count(engine, active, event, arrived, payments)
                if isinstance(counted, AcceptedEvent):
                    yield counted
                    return
            ids |= {counted}


@asynccontextmanager
async def _labelled(
    engine: Engine, account: int, ids: Iterable[str]
) -> AsyncIterator[Mapping[str, PaymentToLabel | None]]:
    """The payments with these ids, None for an unknown id; only the block may change them."""
    async with engine.locks.of_all("payment", account, ids):
        yield {id_: await read_to_label(engine, account, id_) for id_ in ids}


async def _count(
    engine: Engine,
    active: ActivePrograms,
    event: Event,
    arrived: int,
    payments: Mapping[str, PaymentToLabel | None],
) -> AcceptedEvent | str:
    """Count an event. It never suspends: an entry with a later sequence number might be appended first.

    If it labels a payment that is not in `payments`, nothing is counted, and that payment's id is
    returned. Raises `Invalid`, also when the event's type was withdrawn, with its windows, since the
    event was read.
    """
    account, loaded = active.account.number, event.loaded
    arrived = engine.arrivals.put_in_order(arrived)
    facts, name = Arrival(arrived), loaded.program.name
    record = Record(account, event.id, event.timestamp, arrived, State(data=event.data), event=name)
    try:
        observed = await engine.windows.observe(
            record, loaded.reading.reads(facts, event.data, active.environment)
        )
    except NotWholeError:
        raise Invalid([not_active()]) from None
    try:
        given = loaded.label_given(facts, event.data, observed.values, active.environment)
        if given is not None and given.payment not in payments:
            await engine.windows.withdraw(observed)
            return given.payment
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
        receipt = EventReceipt(
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
        payment = None if given is None else payments[given.payment]
        label = None
        if given is not None and payment is not None:
            label = await _count_label(engine, entry, name, given, payment)
    except BaseException:
        await engine.windows.withdraw(observed)
        raise
    return AcceptedEvent(Pending(observed, entry, transitions, label), receipt)


async def _count_label(
    engine: Engine, event: Entry, type_: str, given: GivenLabel, payment: PaymentToLabel
) -> Pending | None:
    """Count the label that an event gives to a payment; None when the payment has it already.
    Raises `Invalid`."""
    source: LabelSource = type_ if type_ in SOURCES else "import"
    label = Label(source, given.label, event.time, event.id)
    try:
        return await count_label(engine, payment, label, event.arrived)
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
