"""Take records out of the windows that the journal no longer holds, so that a restart changes no
value."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation, Record, State
from tollkeeper.engine.window_snapshot import forget_in_snapshot


@asynccontextmanager
async def rewriting(engine: Engine, account: int) -> AsyncIterator[None]:
    """A block in which the account's past may be changed, in the journal and in the windows.

    If it is interrupted, the next start fills the account's windows and first-seen times from the
    whole journal.
    """
    engine.rewriting.add(account)
    await forget_in_snapshot(engine, (account,))
    async with engine.seen_times.rewriting(account, engine.journal.flush):
        yield
    engine.rewriting.discard(account)
    engine.snapshot_due.set()


def drop_unfinished_erasures(engine: Engine, account: int) -> None:
    """Forget interrupted erasures: the account's windows were emptied and are filled from the
    journal."""
    for each in [each for each in engine.unfinished_erasures if each[0] == account]:
        del engine.unfinished_erasures[each]


async def uncount_payment(engine: Engine, account: int, id_: str, state: State) -> None:
    """Take a payment out of all windows and first-seen times."""
    await engine.windows.withdraw(await _observation(engine, account, id_, state))


async def count_payment(engine: Engine, account: int, id_: str, state: State) -> None:
    """Count an erased payment again, after `uncount_payment`."""
    observed = await _observation(engine, account, id_, state)
    await engine.windows.observe(observed.record, ())


async def recount_event(engine: Engine, old: Record, new: Record) -> None:
    """Replace an event in the windows by what the erasure left of it."""
    sequence = await engine.windows.take_sequence()
    await engine.windows.withdraw(Observation(sequence, old, ()))
    await engine.windows.observe(new, ())


async def _observation(engine: Engine, account: int, id_: str, state: State) -> Observation:
    # Windows ignore what is older than the beginning of their filling.
    facts: Facts = state.payment
    record = Record(account, id_, facts.timestamp, facts.arrived, state)
    return Observation(await engine.windows.take_sequence(), record, ())
