"""The steps of an update: read the stored payment, merge the update into it, count the result."""

from __future__ import annotations

from typing import NamedTuple

from tollkeeper.engine.facts.facts import Facts, amend, record
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.merge import merge
from tollkeeper.engine.intake.payment import MAX_UPDATES, Payment, Update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending, payment_transitions
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.velocity.contract import Record, State


class UpdatedPayment(NamedTuple):
    """A payment after an update that windows count already and the journal does not hold yet."""

    pending: Pending
    payment: Payment


async def merge_update(
    engine: Engine, account: int, payment_id: str, update: Update, arrived: int
) -> UpdatedPayment | tuple[Violation, ...] | None:
    """Merge an update into the stored payment and count it; None when no payment has the id.

    Returns violations when the update contradicts the stored payment, or when the payment has been
    updated `MAX_UPDATES` times: each update stores the whole payment, and reading the payment reads
    all of them. `arrived` in µs; see `Arrivals`.
    """
    journal = engine.journal
    stored = await journal.first_and_last(account, payment_id)
    if stored is None:
        return None
    was_updated = stored[0].sequence != stored[1].sequence
    if was_updated and await journal.count_updates(account, payment_id, MAX_UPDATES) == MAX_UPDATES:
        return (violations.too_long("payment", MAX_UPDATES, "updates"),)
    before = await payment_state(engine, *stored)
    after = apply_update(before, update, arrived)
    if not isinstance(after, State):
        return after
    facts: Facts = after.payment
    arrived = engine.arrivals.put_in_order(arrived)
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
    """A payment's state after an update; violations when the update contradicts it."""
    facts: Facts = before.payment
    merged = merge(facts.payment, update, arrived)
    if not isinstance(merged, Payment):
        return merged
    after = amend(facts, merged)
    return State(after, before.decision, None, before.environment, before.label)
