"""A stored payment as windows count it: with what its arrival met and what is known of it by now."""

from __future__ import annotations

from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.registry.environments import PastEnvironments
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import state_of
from tollkeeper.engine.velocity.contract import State


def past_environments(engine: Engine, account: int) -> PastEnvironments:
    """What the account's records met when they arrived."""
    configured, now = engine.state.accounts[account], engine.active[account].environment
    return PastEnvironments(engine.journal, engine.past_states, configured, now)


async def payment_state(engine: Engine, created: Entry, latest: Entry) -> State:
    """A payment as its latest update left it; `latest` is `created` when it has none."""
    environment = past_environments(engine, created.account).at(created.sequence)
    return state_of(created, latest, environment)
