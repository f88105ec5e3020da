"""Monitors of the built-in type `payment`: they look at a payment once it is decided."""

from __future__ import annotations

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.monitors.alerts import Turn
from tollkeeper.engine.monitors.watch import turns_at
from tollkeeper.engine.programs.active import InForce, choose_event_type
from tollkeeper.engine.runtime import Engine
from tollkeeper.grammar.checker.files import BUILT_IN_EVENT


async def payment_turns(engine: Engine, force: InForce, facts: Facts) -> tuple[Turn, ...]:
    """How monitors turn with a payment that the windows count already, decision included."""
    loaded = choose_event_type(force, BUILT_IN_EVENT, facts.timestamp)
    if loaded is None or not loaded.monitors:
        return ()
    account, at = force.account.number, facts.timestamp
    values = await engine.windows.read(account, at, loaded.reads(facts, None))
    return turns_at(
        engine.watch.standings, account, loaded, at, facts, None, values, force.environment
    )
