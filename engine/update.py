"""The way of an update: what is known of the payment, merged, counted from now on, to be kept."""

from __future__ import annotations

from typing import NamedTuple

from tollkeeper.engine.facts.facts import Facts, amend, record
from tollkeeper.engine.intake.merge import merge
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending, payment_transitions
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.velocity.contract import Record, State


class UpdatedPayment(NamedTuple):
    """A payment as it is known after an update that is still to be kept."""

    pending: Pending
    payment: Payment


async def merge_update(
    engine: Engine, account: int, payment_id: str, update: Update, arrived: int
) -> UpdatedPayment | tuple[Violation, ...] | None:
    """Merge an update, which windows count from now on; None when no payment has the id.

    Violations when what is known and what was sent don't fit together. `arrived` in µs.
    """
    known = await engine.journal.first_and_last(account, payment_id)
    if known is None:
        return None
    before = await payment_state(engine, *known)
    after = apply_update(before, update, arrived)
    if not isinstance(after, State):
        return after
    facts: Facts = after.payment
    observed = await engine.windows.observe(
        Record(account, payment_id, facts.timestamp, arrived, after, before), ()
    )
    try:
        transitions = await payment_transitions(engine, engine.active[account], facts)
        entry = Entry(
            sequence=observed.sequence,
            account=account,
            kind=Kind.UPDATE,
            id=payment_id,
            arrived=arrived,
            time=facts.timestamp,
            body=encode_stored(record(facts)),
            outcome=encode_stored(EventOutcome(transitions=transitions)) if transitions else None,
        )
    except BaseException:
        await engine.windows.withdraw(observed)
        raise
    return UpdatedPayment(Pending(observed, entry, transitions), facts.payment)


def apply_update(before: State, update: Update, arrived: int) -> State | tuple[Violation, ...]:
    """What is known of a payment after an update; violations when the two don't fit together."""
    facts: Facts = before.payment
    merged = merge(facts.payment, update, arrived)
    if not isinstance(merged, Payment):
        return merged
    after = amend(facts, merged)
    return State(after, before.decision, None, before.environment, before.label)
