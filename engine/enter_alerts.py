"""Enter alerts into the outbox once the record that raised them is on disk.

The journal's entry holds its transitions, so that nothing is lost when the outbox can't be written, or
the process ends first: a running service tries again, and the next start or owner reads the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.damage import UNREADABLE, named_damage
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.reads import sequence_at
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition, has_transitions, transitions_of
from tollkeeper.engine.monitors.states import MonitorKey
from tollkeeper.engine.purge_alerts import forget_in_outbox
from tollkeeper.engine.runtime import Engine

_LONGEST_WAIT = HOUR // 60
"""More than a record waits from its arrival until it is stored (µs)."""
RESCAN_LIMIT = 10_000
"""After this many sequence numbers, the progress is written, so that a start reads few again."""


async def settle_transitions(
    engine: Engine, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Make the transitions of a record on disk final, and enter their alerts into the outbox.

    When the outbox can't be written, `enter_missed` does it later: the record itself is kept.
    """
    if not transitions:
        return
    states = engine.monitors.states
    states.settle(account, sequence, transitions)
    forgotten = states.forget_excess(account)
    try:
        await _enter(engine, account, sequence, transitions, forgotten)
    except Unavailable as error:
        engine.monitors.missed[sequence] = (account, transitions)
        get_logger().error(
            "alerts_not_noted", account=account, sequence=sequence, reason=str(error)
        )


async def enter_missed(engine: Engine) -> None:
    """Enter the alerts that could not be entered when their record was kept. Raises `Unavailable`."""
    missed = engine.monitors.missed
    for sequence, (account, transitions) in list(missed.items()):
        if account in engine.state.accounts:
            await _enter(engine, account, sequence, transitions)
        engine.monitors.open.discard(sequence)
        missed.pop(sequence, None)


async def _enter(
    engine: Engine,
    account: int,
    sequence: int,
    transitions: Sequence[Transition],
    forgotten: Sequence[MonitorKey] = (),
) -> None:
    monitors = engine.monitors
    urls = _alert_addresses(engine, account)
    others = (each for each in monitors.open if each != sequence)
    entered = min(sequence, min(others, default=sequence + 1) - 1)
    now = engine.clock()

    def work(connection: SqlConnection) -> None:
        outbox.add_alerts(connection, account, sequence, transitions, urls, engine.folder_key, now)
        outbox.forget_monitor_states(connection, forgotten)
        outbox.set_entered(connection, entered)

    await engine.outbox.write(work)
    monitors.open.discard(sequence)
    if any(transition.met for transition in transitions):
        monitors.raised.set()


async def recover_alerts(engine: Engine) -> None:
    """Load the monitors' states, and enter the alerts that the last owner did not enter."""
    entered = await engine.outbox.read(outbox.entered_up_to)
    for key, state in await engine.outbox.read(outbox.monitor_states):
        engine.monitors.states.set(key, state)
    entries = await _entries_that_may_alert(engine, entered)
    while (entry := await _next_with_transitions(entries)) is not None:
        try:
            transitions = transitions_of(entry.outcome)
        except UNREADABLE as error:
            engine.damage.meet(entry, error)
            continue
        if transitions:
            await _enter_again(engine, entry, transitions)
    for account in engine.state.accounts:
        await forget_in_outbox(engine, engine.monitors.states.forget_excess(account))
    engine.monitors.entered = entered
    await write_entered_if_due(engine)


async def write_entered_if_due(engine: Engine) -> None:
    """`write_entered`, once `RESCAN_LIMIT` sequence numbers have passed since the last time."""
    if engine.journal.last_sequence() >= engine.monitors.entered + RESCAN_LIMIT:
        await write_entered(engine)


async def write_entered(engine: Engine) -> None:
    """Write that all alerts up to the journal's end have been entered, so that the next start reads
    nothing again. Raises `Unavailable`."""
    sequence = engine.journal.last_sequence()
    if not engine.monitors.open:
        await engine.outbox.write(partial(outbox.set_entered, sequence=sequence))
        engine.monitors.entered = sequence


async def _entries_that_may_alert(engine: Engine, after: int) -> Iterator[Entry]:
    """All changes after a sequence number, then the payments, updates and events since some account
    first had an event type: only there are monitors."""
    changes = engine.journal.changes(after=after)
    stored = [
        version.stored_at
        for account in engine.state.accounts.values()
        for (kind, _), file in account.files.items()
        if kind == "event"
        for version in file.versions
    ]
    if not stored:
        return changes
    # A record may have waited since it arrived, and be stored after the event type.
    since = min(stored) - _LONGEST_WAIT
    first = await engine.journal.query(partial(sequence_at, time=since))
    kinds = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT)
    records = engine.journal.replay(after=max(after, first - 1), kinds=kinds)
    return chain(changes, chain.from_iterable(records))


async def _next_with_transitions(entries: Iterator[Entry]) -> Entry | None:
    """The next entry with a transition, None at the end."""
    watched = (entry for entry in entries if has_transitions(entry.outcome))
    with named_damage():
        return await asyncio.to_thread(next, watched, None)


async def _enter_again(engine: Engine, entry: Entry, transitions: Sequence[Transition]) -> None:
    urls = _alert_addresses(engine, entry.account)
    now = engine.clock()
    engine.monitors.states.replay(entry.account, entry.sequence, transitions)
    await engine.outbox.write(
        lambda connection: outbox.add_alerts(
            connection, entry.account, entry.sequence, transitions, urls, engine.folder_key, now
        )
    )


def _alert_addresses(engine: Engine, account: int) -> tuple[str, ...]:
    """The addresses that alerts are sent to."""
    webhooks = engine.state.accounts[account].webhooks
    return tuple(url for url, webhook in webhooks.items() if "alert.raised" in webhook.kinds)
