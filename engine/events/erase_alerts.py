"""After the journal was rewritten, remove from alerts and monitors' states what it no longer holds.

All of them are derived from the journal's transitions, so an interrupted run can be repeated.
"""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition, transitions_of
from tollkeeper.engine.monitors.outbox import Alert
from tollkeeper.engine.monitors.states import MonitorKey, MonitorState
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored

_AT_ONCE = 200
"""How many are checked between two yields to the event loop."""


async def follow_journal(engine: Engine, account: int) -> int:
    """Update alerts and states from the journal; returns how many alerts changed. Raises
    `JournalError`."""
    changed = await _follow_alerts(engine, account)
    await _follow_states(engine, account)
    await engine.outbox.empty_log()
    return changed


async def _follow_alerts(engine: Engine, account: int) -> int:
    before, count = None, 0
    while found := list(await engine.outbox.read(partial(_page, account=account, before=before))):
        before = found[-1].sequence
        places = {alert.sequence for alert in found}
        kept = {place: await _transitions_at(engine, place) for place in places}
        changed = [
            new for alert in found if (new := _as_kept(alert, kept[alert.sequence])) != alert
        ]
        if changed:
            await engine.outbox.write(partial(outbox.set_alerts, changed=changed))
        count += len(changed)
        await asyncio.sleep(0)
    return count


def _as_kept(alert: Alert, transitions: tuple[Transition, ...] | None) -> Alert:
    if transitions is None or alert.number >= len(transitions):
        return alert
    return replace(alert, transition=transitions[alert.number])


async def _follow_states(engine: Engine, account: int) -> None:
    beyond = None
    while found := await engine.outbox.read(
        partial(outbox.monitor_states_of, account=account, beyond=beyond, limit=_AT_ONCE)
    ):
        beyond = found[-1][0]
        gone = [of for of, state in found if not await _stands(engine, of, state)]
        if gone:
            await engine.outbox.write(partial(outbox.forget_monitor_states, gone=gone))
            engine.monitors.states.forget(gone)
        await asyncio.sleep(0)


async def _stands(engine: Engine, of: MonitorKey, state: MonitorState) -> bool:
    """Whether the journal still leads to this state, or no longer has the record that led to it."""
    entry = await engine.journal.entry(state.sequence)
    if entry is None or (entry.outcome is not None and _beginning(of) in entry.outcome):
        return True
    return of[1:] in [
        (transition.type, transition.monitor, transition.key)
        for transition in transitions_of(entry.outcome)
    ]


def _beginning(of: MonitorKey) -> bytes:
    """How a transition of the monitor begins in an outcome: found sooner than all of it is decoded."""
    _, type_, monitor, key = of
    return encode_stored(Transition(type_, monitor, key, at=0, met=False)).partition(b'"at":')[0]


async def _transitions_at(engine: Engine, sequence: int) -> tuple[Transition, ...] | None:
    entry = await engine.journal.entry(sequence)
    return None if entry is None else transitions_of(entry.outcome)


def _page(connection: SqlConnection, account: int, before: int | None) -> list[Alert]:
    return list(outbox.alerts(connection, account, before, _AT_ONCE))
