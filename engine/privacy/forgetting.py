"""Windows forget what the journal no longer holds, so that a restart changes nothing they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation, Record, State
from tollkeeper.engine.window_snapshot import forget_in_snapshot


@asynccontextmanager
async def rewriting(engine: Engine, account: int) -> AsyncIterator[None]:
    """Within it the account's past may change, in the journal and in the windows.

    Should that be cut off, the next start fills the account's ages and windows from the whole
    journal.
    """
    engine.rewriting.add(account)
    await forget_in_snapshot(engine, (account,))
    async with engine.seen_times.rewriting(account, engine.journal.flush):
        yield
    engine.rewriting.discard(account)
    engine.snapshot_due.set()


def drop_unfinished_erasures(engine: Engine, account: int) -> None:
    """The account's windows were emptied, and are filled from what the journal has."""
    for each in [each for each in engine.unfinished_erasures if each[0] == account]:
        del engine.unfinished_erasures[each]


async def uncount_payment(engine: Engine, account: int, id_: str, state: State) -> None:
    """Count a payment no longer, in any window or age."""
    await engine.windows.withdraw(await _observation(engine, account, id_, state))


async def count_payment(engine: Engine, account: int, id_: str, state: State) -> None:
    """Count a payment that was taken back as what is left of it."""
    observed = await _observation(engine, account, id_, state)
    await engine.windows.observe(observed.record, ())


async def recount_event(engine: Engine, old: Record, new: Record) -> None:
    """Count an event as what is left of it."""
    sequence = await engine.windows.take_sequence()
    await engine.windows.withdraw(Observation(sequence, old, ()))
    await engine.windows.observe(new, ())


async def _observation(engine: Engine, account: int, id_: str, state: State) -> Observation:
    # Windows that were filled pass over what is older than their filling.
    facts: Facts = state.payment
    record = Record(account, id_, facts.timestamp, facts.arrived, state)
    return Observation(await engine.windows.take_sequence(), record, ())
