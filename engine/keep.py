"""The last step of a payment, an update or an event: append it to the journal, or undo everything.

A record is counted by the windows before it is appended, as the next record may read it. Between
counting and `keep` nothing awaits I/O, and nothing is answered before `keep` is done. When the
append fails, the record is taken out of the windows again.

Monitors work the same way. A transition is counted before its record is appended, so that the next
record sees it; it is undone when the append fails, and entered into the outbox once the record is
on disk. After a crash, the next start enters what is missing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Overloaded, Unavailable
from tollkeeper.engine.journal.damage import UNREADABLE, named_damage
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind
from tollkeeper.engine.journal.reads import sequence_at
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition, has_transitions, transitions_of
from tollkeeper.engine.monitors.states import MonitorKey, Monitors, transitions_at
from tollkeeper.engine.programs.active import ActivePrograms, choose_event_type
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation
from tollkeeper.grammar.program import BUILT_IN_EVENT


class Pending(Struct, frozen=True):
    """A record that windows count and the journal does not have yet, with its monitors'
    transitions.

    `label` is the label that an event gives to a payment: counted with the event, and kept with it.
    """

    observed: Observation
    entry: Entry
    transitions: tuple[Transition, ...] = ()
    label: Pending | None = None


async def keep(engine: Engine, pending: Pending, idempotency: Idempotency | None = None) -> None:
    """Append a record, with the response for its idempotency key if it has one; returns once it is
    on disk.

    Alerts among its transitions are in the outbox then. Raises `Taken` for an id in use,
    `Unavailable` or `Overloaded` when it can't be kept; the record is then taken out of windows and
    monitors.
    """
    observed, entry = pending.observed, pending.entry
    transitions, label = pending.transitions, pending.label
    account, sequence = entry.account, entry.sequence
    count_transitions(engine.monitors, account, sequence, transitions)
    kept = label_kept = None
    try:
        kept = engine.journal.append(entry, idempotency)
        if label is not None:
            # Appended before either is awaited, both are written in one transaction.
            with suppress(Overloaded):
                label_kept = engine.journal.append(label.entry)
        await kept
        if label is not None:
            if label_kept is None:
                label = await _count_again(engine, label)
                label_kept = engine.journal.append(label.entry)
            await label_kept
    finally:
        # A cancelled request gets here too, and only after its entry was written or lost.
        is_lost = kept is None or kept.exception() is not None
        if label is not None and (is_lost or _is_lost(label_kept)):
            await engine.windows.withdraw(label.observed)
        if is_lost:
            withdraw_transitions(engine.monitors, account, sequence, transitions)
            await engine.windows.withdraw(observed)
    if transitions:
        await note_transitions(engine, account, sequence, transitions)


async def keep_uncounted(
    engine: Engine, account: int, kind: Kind, id_: str, time: int, body: bytes
) -> None:
    """Append what no window counts; returns once it is on disk. `time` in µs. Raises
    `JournalError`."""
    entry = Entry(
        sequence=await engine.windows.take_sequence(),
        account=account,
        kind=kind,
        id=id_,
        arrived=engine.arrivals.put_in_order(engine.clock()),
        time=time,
        body=body,
    )
    await engine.journal.append(entry)


async def take_back(engine: Engine, pending: Pending) -> None:
    """Take a record that will not be kept, and its label, out of the windows."""
    if pending.label is not None:
        await engine.windows.withdraw(pending.label.observed)
    await engine.windows.withdraw(pending.observed)


async def _count_again(engine: Engine, label: Pending) -> Pending:
    """The same with a new sequence number, as later ones may have been appended meanwhile."""
    await engine.windows.withdraw(label.observed)
    arrived = engine.arrivals.put_in_order(label.entry.arrived)
    observed = await engine.windows.observe(replace(label.observed.record, arrived=arrived), ())
    entry = label.entry._replace(sequence=observed.sequence, arrived=arrived, time=arrived)
    return replace(label, observed=observed, entry=entry)


def _is_lost(written: asyncio.Future[None] | None) -> bool:
    return written is None or (written.done() and written.exception() is not None)


_STATES_AT_ONCE = 500
"""How many states are removed from the outbox in one step: a few milliseconds."""
_LONGEST_WAIT = HOUR // 60
"""More than a record waits from its arrival until it is stored (µs)."""
RESCAN_LIMIT = 10_000
"""After this many sequence numbers, the progress is written, so that a start reads few again."""


async def payment_transitions(
    engine: Engine, active: ActivePrograms, facts: Facts
) -> tuple[Transition, ...]:
    """The monitors' transitions at a payment that windows count already, with its decision."""
    if not active.events:
        return ()
    loaded = choose_event_type(active, BUILT_IN_EVENT, facts.timestamp)
    if loaded is None or not loaded.monitors:
        return ()
    account, at = active.account.number, facts.timestamp
    reads = loaded.reading.reads(facts, None, active.environment)
    values = await engine.windows.read(account, at, reads)
    return transitions_at(
        engine.monitors.states, account, loaded, at, facts, None, values, active.environment
    )


def count_transitions(
    monitors: Monitors, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Apply the transitions of a record that is about to be appended."""
    if transitions:
        monitors.open.add(sequence)
        monitors.states.add(account, sequence, transitions)


def withdraw_transitions(
    monitors: Monitors, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Undo the transitions of a record that could not be kept."""
    if transitions:
        monitors.open.discard(sequence)
        monitors.states.undo(account, sequence, transitions)


async def note_transitions(
    engine: Engine, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Make the transitions of a record on disk final, and enter their alerts into the outbox.

    When the outbox can't be written, `note_missed` does it later: the record itself is kept.
    """
    if not transitions:
        return
    states = engine.monitors.states
    states.settle(account, sequence, transitions)
    forgotten = states.forget_excess(account)
    try:
        await _list_alerts(engine, account, sequence, transitions, forgotten)
    except Unavailable as error:
        engine.monitors.missed[sequence] = (account, transitions)
        get_logger().error(
            "alerts_not_noted", account=account, sequence=sequence, reason=str(error)
        )


async def note_missed(engine: Engine) -> None:
    """Enter the alerts that could not be entered when their record was kept. Raises `Unavailable`."""
    missed = engine.monitors.missed
    for sequence, (account, transitions) in list(missed.items()):
        if account in engine.state.accounts:
            await _list_alerts(engine, account, sequence, transitions)
        engine.monitors.open.discard(sequence)
        missed.pop(sequence, None)


async def _list_alerts(
    engine: Engine,
    account: int,
    sequence: int,
    transitions: Sequence[Transition],
    forgotten: Sequence[MonitorKey] = (),
) -> None:
    monitors = engine.monitors
    urls = _alert_addresses(engine, account)
    noted = min((each for each in monitors.open if each != sequence), default=sequence + 1) - 1
    now = engine.clock()

    def work(connection: SqlConnection) -> None:
        outbox.add_alerts(connection, account, sequence, transitions, urls, engine.folder_key, now)
        outbox.forget_monitor_states(connection, forgotten)
        outbox.set_listed(connection, min(noted, sequence))

    await engine.outbox.write(work)
    monitors.open.discard(sequence)
    if any(transition.met for transition in transitions):
        monitors.raised.set()


async def recover_alerts(engine: Engine) -> None:
    """Load the monitors' states, and enter alerts that a crash kept out of the outbox."""
    noted = await engine.outbox.read(outbox.listed_up_to)
    for of, state in await engine.outbox.read(outbox.monitor_states):
        engine.monitors.states.set(of, state)
    entries = await _entries_that_may_alert(engine, noted)
    while (entry := await _next_watched(entries)) is not None:
        try:
            transitions = transitions_of(entry.outcome)
        except UNREADABLE as error:
            engine.damage.meet(entry, error)
            continue
        if transitions:
            await _note_again(engine, entry, transitions)
    for account in engine.state.accounts:
        await _forget_in_outbox(engine, engine.monitors.states.forget_excess(account))
    engine.monitors.noted = noted
    await remember_progress(engine)


async def remember_progress(engine: Engine) -> None:
    """Now and then, write that all alerts up to the journal's end have been entered."""
    if engine.journal.last_sequence() >= engine.monitors.noted + RESCAN_LIMIT:
        await note_listed(engine)


async def note_listed(engine: Engine) -> None:
    """Write that all alerts up to the journal's end have been entered, so that the next start reads
    nothing again. Raises `Unavailable`."""
    sequence = engine.journal.last_sequence()
    if not engine.monitors.open:
        await engine.outbox.write(partial(outbox.set_listed, sequence=sequence))
        engine.monitors.noted = sequence


async def purge_alerts(engine: Engine, account: int, before: int) -> None:
    """Remove alerts with event times before `before` (µs) and their deliveries. Raises
    `Unavailable`."""
    step = partial(outbox.purge_alerts_step, account=account, before=before)
    while await engine.outbox.write(step):
        pass


async def purge_states(engine: Engine, account: int) -> None:
    """Forget monitors' states that say no more than none would. Raises `Unavailable`."""
    spans: defaultdict[tuple[str, str], int] = defaultdict(int)
    for (name, _), type_ in engine.active[account].events.items():
        for monitor in type_.monitors:
            of = name, monitor.program.name
            spans[of] = max(spans[of], monitor.program.every or 0)
    # What comes late is evaluated at its own time.
    now, states = engine.clock() - engine.windows.late, engine.monitors.states
    found = iter(list(states.without_meaning(account, spans, now)))
    while some := list(islice(found, _STATES_AT_ONCE)):
        # A key that was alerted while others were removed has a new state.
        gone = [of for of, state in some if states.of(of) is state]
        states.forget(gone)
        await _forget_in_outbox(engine, gone)


async def _forget_in_outbox(engine: Engine, gone: Sequence[MonitorKey]) -> None:
    for start in range(0, len(gone), _STATES_AT_ONCE):
        some = gone[start : start + _STATES_AT_ONCE]
        await engine.outbox.write(partial(outbox.forget_monitor_states, gone=some))


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


async def _next_watched(entries: Iterator[Entry]) -> Entry | None:
    """The next entry with a transition, None at the end."""
    watched = (entry for entry in entries if has_transitions(entry.outcome))
    with named_damage():
        return await asyncio.to_thread(next, watched, None)


async def _note_again(engine: Engine, entry: Entry, transitions: Sequence[Transition]) -> None:
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
