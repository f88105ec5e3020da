"""A history, run through windows as live traffic is, and read by what comes after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.clients import client
from tollkeeper.engine.facts.facts import Facts, derive
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.offline.testing.streams import (
    Created,
    Entered,
    Happened,
    Item,
    StreamError,
    Updated,
)
from tollkeeper.engine.programs.event_contract import Contract, own_data, read_data
from tollkeeper.engine.update import updated
from tollkeeper.engine.velocity.contract import (
    Observation,
    Read,
    Record,
    SeriesPlan,
    State,
    Windows,
)
from tollkeeper.engine.velocity.memory import MemoryWindows
from tollkeeper.engine.velocity.plan import Plan
from tollkeeper.grammar.program import EventType, Value

ACCOUNT = 1

Known = dict[str, State]
"""What is known of each payment."""
Events = Mapping[str, EventType | None]
"""The event types that a stream may hold events of; None for one with errors."""


def read_history(
    plan: Plan, history: Sequence[Item], events: Events, facts: Facts, reads: Sequence[Read]
) -> tuple[Value | None, ...]:
    """The aggregates that the payment of `facts` reads after what happened.

    Raises `StreamError` for a history that doesn't fit together.
    """
    return asyncio.run(_read(plan, history, events, facts, reads))


async def _read(
    plan: Plan, history: Sequence[Item], events: Events, facts: Facts, reads: Sequence[Read]
) -> tuple[Value | None, ...]:
    windows = await empty_windows(plan.series)
    known: Known = {}
    for item in history:
        await take_in(windows, known, item, events)
    record = Record(ACCOUNT, "given", facts.timestamp, facts.arrived, State(facts))
    return (await windows.observe(record, reads)).values


async def empty_windows(plans: Sequence[SeriesPlan]) -> Windows:
    """Windows that count these series from now on."""
    windows = MemoryWindows()
    await windows.seal(await windows.add(ACCOUNT, plans))
    return windows


async def take_in(
    windows: Windows, known: Known, item: Item, events: Events, reads: Sequence[Read] = ()
) -> Observation:
    """Counts what happened, a payment with the decision that the stream says.

    Raises `StreamError` when it doesn't fit what happened before.
    """
    match item:
        case Created(payment=payment):
            if payment.id in known:
                raise already_there(item)
            state = State(derive(payment, item.arrived, client))
            record = Record(ACCOUNT, payment.id, payment.microseconds, item.arrived, state)
            observed = await windows.observe(record, reads)
            observed = await windows.settle(observed, item.decision or Decision())
            known[payment.id] = observed.record.state
            return observed
        case Updated():
            record = update_record(known, item)
            known[item.id] = record.state
            return await windows.observe(record, reads)
        case Happened():
            return await windows.observe(event_record(item, events), reads)
        case Entered():
            raise StreamError(f"line {item.line}: a test gives its lists itself")


def already_there(item: Created) -> StreamError:
    return StreamError(f"line {item.line}: there is a payment `{item.payment.id}` already")


def update_record(known: Known, item: Updated) -> Record:
    """An update with what was known of its payment. Raises `StreamError`."""
    before = known.get(item.id)
    if before is None:
        raise StreamError(f"line {item.line}: there is no payment `{item.id}` before this")
    after = updated(before, item.update, item.arrived)
    if not isinstance(after, State):
        raise StreamError(f"line {item.line}: {told(after)}")
    return Record(ACCOUNT, item.id, before.payment.timestamp, item.arrived, after, before)


def event_record(item: Happened, events: Events) -> Record:
    """An event, its data read by its type's fields. Raises `StreamError`."""
    type_ = events.get(item.type)
    if type_ is None:
        raise StreamError(f"line {item.line}: there is no event type `{item.type}`")
    contract = Contract.of(type_)
    reading = read_data(contract, item.data, "event.data")
    if reading.violations:
        raise StreamError(f"line {item.line}: {told(reading.violations)}")
    data = own_data(contract, reading.values, item.id, item.timestamp)
    return Record(ACCOUNT, item.id, item.timestamp, item.arrived, State(data=data), event=item.type)


def told(violations: Iterable[Violation]) -> str:
    return "; ".join(f"`{each.field}`: {each.message}" for each in violations)
