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
    while page := await engine.outbox.read(
        partial(outbox.monitor_states_of, account=account, beyond=beyond, limit=_AT_ONCE)
    ):
        beyond = page[-1][0]
        outdated = [key for key, state in page if not await _holds(engine, key, state)]
        if outdated:
            await engine.outbox.write(partial(outbox.forget_monitor_states, gone=outdated))
            engine.monitors.states.forget(outdated)
        await asyncio.sleep(0)


async def _holds(engine: Engine, key: MonitorKey, state: MonitorState) -> bool:
    """Whether the journal still leads to this state, or no longer has the record that led to it."""
    entry = await engine.journal.entry(state.sequence)
    if entry is None or (entry.outcome is not None and _beginning(key) in entry.outcome):
        return True
    return key[1:] in [
        (transition.type, transition.monitor, transition.key)
        for transition in transitions_of(entry.outcome)
    ]


def _beginning(monitor_key: MonitorKey) -> bytes:
    """How a transition of the monitor begins in an outcome: looking for it is faster than decoding."""
    _, type_, monitor, key = monitor_key
    return encode_stored(Transition(type_, monitor, key, at=0, met=False)).partition(b'"at":')[0]


async def _transitions_at(engine: Engine, sequence: int) -> tuple[Transition, ...] | None:
    entry = await engine.journal.entry(sequence)
    return None if entry is None else transitions_of(entry.outcome)


def _page(connection: SqlConnection, account: int, before: int | None) -> list[Alert]:
    return list(outbox.alerts(connection, account, before, _AT_ONCE))
