"""Acknowledge, close or reopen an alert."""

from __future__ import annotations

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.registry.alert_marks import mark_alert
from tollkeeper.engine.registry.changes import AlertState
from tollkeeper.engine.runtime import Engine


async def put_alert_mark(
    engine: Engine, account: int, by: str, sequence: int, number: int, state: AlertState, note: str
) -> None:
    """Raises `Invalid`."""
    async with engine.changing:
        change = mark_alert(engine.state.accounts[account], sequence, number, state, note)
        if change is not None:
            await make_change(engine, account, by, change)
