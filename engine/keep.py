"""The last step of a payment, an update or an event: append it to the journal, or undo everything.

A record is counted by the windows before it is appended, as the next record may read it. Between
counting and `keep` nothing awaits I/O, and nothing is answered before `keep` is done. When the
append fails, the record is taken out of the windows again.

Monitors work the same way. A transition is counted before its record is appended, so that the next
record sees it. When the append fails, it is withdrawn; once the record is on disk, it is settled, and
its alert is entered into the outbox (`enter_alerts.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.enter_alerts import settle_transitions
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.journal.contract import Overloaded
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.states import Monitors, transitions_at
from tollkeeper.engine.programs.active import ActivePrograms, choose_event_type
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation
from tollkeeper.grammar.program import BUILT_IN_EVENT


class Pending(Struct, frozen=True):
    """A record that windows count and the journal does not have yet, with its monitors'
    transitions.

    `label` is the label that an event gives to a payment: counted with the event, and kept with it.
    """

    observed: Observation
    entry: Entry
    transitions: tuple[Transition, ...] = ()
    label: Pending | None = None


async def keep(engine: Engine, pending: Pending, idempotency: Idempotency | None = None) -> None:
    """Append a record, with the response for its idempotency key if it has one; returns once it is
    on disk.

    Alerts among its transitions are in the outbox then. Raises `Taken` for an id in use,
    `Unavailable` or `Overloaded` when it can't be kept; the record is then taken out of windows and
    monitors.
    """
    observed, entry = pending.observed, pending.entry
    transitions, label = pending.transitions, pending.label
    account, sequence = entry.account, entry.sequence
    count_transitions(engine.monitors, account, sequence, transitions)
    kept = label_kept = None
    try:
        kept = engine.journal.append(entry, idempotency)
        if label is not None:
            # Appended before either is awaited, both are written in one transaction.
            with suppress(Overloaded):
                label_kept = engine.journal.append(label.entry)
        await kept
        if label is not None:
            if label_kept is None:
                label = await _count_again(engine, label)
                label_kept = engine.journal.append(label.entry)
            await label_kept
    finally:
        # A cancelled request gets here too, and only after its entry was written or lost.
        is_lost = kept is None or kept.exception() is not None
        if label is not None and (is_lost or _is_lost(label_kept)):
            await engine.windows.withdraw(label.observed)
        if is_lost:
            withdraw_transitions(engine.monitors, account, sequence, transitions)
            await engine.windows.withdraw(observed)
    if transitions:
        await settle_transitions(engine, account, sequence, transitions)


async def keep_uncounted(
    engine: Engine, account: int, kind: Kind, id_: str, time: int, body: bytes
) -> None:
    """Append what no window counts; returns once it is on disk. `time` in µs. Raises
    `JournalError`."""
    entry = Entry(
        sequence=await engine.windows.take_sequence(),
        account=account,
        kind=kind,
        id=id_,
        arrived=engine.arrivals.put_in_order(engine.clock()),
        time=time,
        body=body,
    )
    await engine.journal.append(entry)


async def take_back(engine: Engine, pending: Pending) -> None:
    """Take a record that will not be kept, and its label, out of the windows."""
    if pending.label is not None:
        await engine.windows.withdraw(pending.label.observed)
    await engine.windows.withdraw(pending.observed)


async def _count_again(engine: Engine, label: Pending) -> Pending:
    """The label with a new sequence number, as entries with later ones may have been appended."""
    await engine.windows.withdraw(label.observed)
    arrived = engine.arrivals.put_in_order(label.entry.arrived)
    observed = await engine.windows.observe(replace(label.observed.record, arrived=arrived), ())
    entry = label.entry._replace(sequence=observed.sequence, arrived=arrived, time=arrived)
    return replace(label, observed=observed, entry=entry)


def _is_lost(written: asyncio.Future[None] | None) -> bool:
    return written is None or (written.done() and written.exception() is not None)


async def payment_transitions(
    engine: Engine, active: ActivePrograms, facts: Facts
) -> tuple[Transition, ...]:
    """The monitors' transitions at a payment that windows count already, with its decision."""
    if not active.events:
        return ()
    loaded = choose_event_type(active, BUILT_IN_EVENT, facts.timestamp)
    if loaded is None or not loaded.monitors:
        return ()
    account, at = active.account.number, facts.timestamp
    reads = loaded.reading.reads(facts, None, active.environment)
    values = await engine.windows.read(account, at, reads)
    return transitions_at(
        engine.monitors.states, account, loaded, at, facts, None, values, active.environment
    )


def count_transitions(
    monitors: Monitors, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Apply the transitions of a record that is about to be appended."""
    if transitions:
        monitors.open.add(sequence)
        monitors.states.add(account, sequence, transitions)


def withdraw_transitions(
    monitors: Monitors, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Undo the transitions of a record that could not be kept."""
    if transitions:
        monitors.open.discard(sequence)
        monitors.states.undo(account, sequence, transitions)
