"""The end of the way: what was decided is put into the journal, or nothing of it is left.

A record is counted before it is appended, since the next one may read it. Between counting and
`keep` nothing waits, and nothing leaves the service before `keep` is done. What fails between the
two takes the record out of the windows again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from tollkeeper.engine.journal.contract import Overloaded
from tollkeeper.engine.journal.entries import Entry, Idempotency
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.raise_alerts import count_transitions, note_transitions, withdraw_transitions
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation


class Pending(NamedTuple):
    """A record that windows count and the journal does not hold yet; `transitions` are its monitors',
    `said` an entry that says more with it.
    """

    observed: Observation
    entry: Entry
    transitions: tuple[Transition, ...] = ()
    said: Entry | None = None


async def keep(engine: Engine, pending: Pending, idempotency: Idempotency | None = None) -> None:
    """Done when the record is on disk, with the response to its idempotency key if it has one.

    Alerts among its transitions are in the outbox then. Raises `Taken` for an id in use, `Unavailable` or
    `Overloaded` when it can't be kept; windows and monitors forget the record then.
    """
    observed, entry, transitions, said = pending
    account, sequence = entry.account, entry.sequence
    count_transitions(engine.watch, account, sequence, transitions)
    kept = None
    try:
        kept = engine.journal.append(entry, idempotency)
        with_it = None
        if said is not None:
            # Appended before either is waited for, both are in one transaction.
            with suppress(Overloaded):
                with_it = engine.journal.append(said)
        await kept
        if said is not None:
            if with_it is None:
                again = said._replace(sequence=await engine.windows.take_sequence())
                with_it = engine.journal.append(again)
            await with_it
    finally:
        # Also in a request that was cancelled: it is woken only once its entry is kept or lost.
        if kept is None or kept.exception() is not None:
            withdraw_transitions(engine.watch, account, sequence, transitions)
            await engine.windows.withdraw(observed)
    if transitions:
        await note_transitions(engine, account, sequence, transitions)


async def take_back(engine: Engine, pending: Pending) -> None:
    """Forgets a record that will not be kept."""
    await engine.windows.withdraw(pending.observed)
