"""The way of an update: what is known of the payment, merged, counted from now on, kept."""

from __future__ import annotations

import msgspec

from tollkeeper.engine.decide import encode, keep
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.events.payment_monitors import payment_turns
from tollkeeper.engine.facts.facts import Facts, StoredFacts, amend, recall, record
from tollkeeper.engine.intake.merge import merge
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Record, State

decode_recorded = msgspec.json.Decoder(StoredFacts).decode
decode_decision = msgspec.json.Decoder(Decision).decode


async def update(
    engine: Engine, account: int, payment_id: str, update_: Update, arrived: int
) -> Payment | tuple[Violation, ...] | None:
    """The payment as known now, once that is on disk; None when no payment has the id.

    Violations when what is known and what was sent don't fit together. Raises `Unavailable` or
    `Overloaded` when the update can't be kept; nothing of it is left then.
    """
    known = await engine.journal.first_and_last(account, payment_id)
    if known is None:
        return None
    before = state_of(*known)
    after = updated(before, update_, arrived)
    if not isinstance(after, State):
        return after
    facts: Facts = after.payment
    observed = await engine.windows.observe(
        Record(account, payment_id, facts.timestamp, arrived, after, before), ()
    )
    turns = await payment_turns(engine, engine.force[account], facts)
    entry = Entry(
        sequence=observed.sequence,
        account=account,
        kind=Kind.UPDATE,
        id=payment_id,
        arrived=arrived,
        time=facts.timestamp,
        body=encode(record(facts)),
        outcome=encode(EventOutcome(turns=turns)) if turns else None,
    )
    await keep(engine, observed, entry, turns=turns)
    return facts.payment


def updated(before: State, update_: Update, arrived: int) -> State | tuple[Violation, ...]:
    """What is known of a payment after an update; violations when the two don't fit together."""
    facts: Facts = before.payment
    merged = merge(facts.payment, update_, arrived)
    if not isinstance(merged, Payment):
        return merged
    return State(amend(facts, merged), before.decision)


def state_of(created: Entry, latest: Entry) -> State:
    """What is known of a payment after its creation and its latest update, or that alone."""
    facts = recall(decode_recorded(latest.body), created.arrived)
    decision = decode_decision(created.outcome) if created.outcome else None
    return State(facts, decision)
