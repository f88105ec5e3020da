"""A stored payment as windows count it: with the environment of its arrival and its present label."""

from __future__ import annotations

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import verdict_in
from tollkeeper.engine.registry.environments import PastEnvironments
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import state_of
from tollkeeper.engine.velocity.contract import State


def past_environments(engine: Engine, account: int) -> PastEnvironments:
    """The environments that the account's records were decided in."""
    configured, now = engine.state.accounts[account], engine.active[account].environment
    return PastEnvironments(engine.journal, engine.past_states, configured, now)


async def payment_state(engine: Engine, created: Entry, latest: Entry) -> State:
    """A payment as its latest update left it; `latest` is `created` when it has none."""
    account = created.account
    environment = past_environments(engine, account).at(created.sequence)
    labels = await engine.journal.of_record(account, Kind.LABEL, created.id)
    return state_of(created, latest, environment, verdict_in(labels))
