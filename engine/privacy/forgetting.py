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


def payment_record(account: int, id_: str, state: State) -> Record:
    """A payment as windows count it."""
    # Windows ignore what is older than the beginning of their filling.
    facts: Facts = state.payment
    return Record(account, id_, facts.timestamp, facts.arrived, state)


async def uncount(engine: Engine, record: Record) -> None:
    """Take a record out of all windows and first-seen times."""
    sequence = await engine.windows.take_sequence()
    await engine.windows.withdraw(Observation(sequence, record, ()))
