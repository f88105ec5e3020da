"""The end of the way: what was decided is put into the journal, or nothing of it is left.

A record is counted before it is appended, since the next one may read it. Between counting and
`keep` nothing waits, and nothing leaves the service before `keep` is done. What fails between the
two takes the record out of the windows again.

Monitors follow the same way. A transition is counted before its record is appended, so that the
next record meets it; it is taken back when the append fails, and put into the outbox once the record
is on disk. What a crash leaves between the two is put there by the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import Overloaded, Unavailable
from tollkeeper.engine.journal.damage import UNREADABLE, named_damage
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition, transitions_of
from tollkeeper.engine.monitors.watch import Watch, transitions_at
from tollkeeper.engine.programs.active import ActivePrograms, choose_event_type
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Observation
from tollkeeper.grammar.checker.files import BUILT_IN_EVENT


class Pending(NamedTuple):
    """A record that windows count and the journal does not hold yet; `transitions` are its monitors',
    `said` what is said with it of another record, counted and not held either.
    """

    observed: Observation
    entry: Entry
    transitions: tuple[Transition, ...] = ()
    said: Pending | None = None


async def keep(engine: Engine, pending: Pending, idempotency: Idempotency | None = None) -> None:
    """Done when the record is on disk, with the response to its idempotency key if it has one.

    Alerts among its transitions are in the outbox then. Raises `Taken` for an id in use,
    `Unavailable` or `Overloaded` when it can't be kept; windows and monitors forget the record
    then.
    """
    observed, entry, transitions, said = pending
    account, sequence = entry.account, entry.sequence
    count_transitions(engine.watch, account, sequence, transitions)
    kept = with_it = None
    try:
        kept = engine.journal.append(entry, idempotency)
        if said is not None:
            # Appended before either is waited for, both are in one transaction.
            with suppress(Overloaded):
                with_it = engine.journal.append(said.entry)
        await kept
        if said is not None:
            if with_it is None:
                said = await _counted_again(engine, said)
                with_it = engine.journal.append(said.entry)
            await with_it
    finally:
        # Also in a request that was cancelled: it is woken only once its entry is kept or lost.
        is_lost = kept is None or kept.exception() is not None
        if said is not None and (is_lost or _is_lost(with_it)):
            await engine.windows.withdraw(said.observed)
        if is_lost:
            withdraw_transitions(engine.watch, account, sequence, transitions)
            await engine.windows.withdraw(observed)
    if transitions:
        await note_transitions(engine, account, sequence, transitions)


async def take_back(engine: Engine, pending: Pending) -> None:
    """Forgets a record that will not be kept, and what is said with it."""
    if pending.said is not None:
        await engine.windows.withdraw(pending.said.observed)
    await engine.windows.withdraw(pending.observed)


async def _counted_again(engine: Engine, said: Pending) -> Pending:
    """The same with a later sequence number."""
    await engine.windows.withdraw(said.observed)
    observed = await engine.windows.observe(said.observed.record, ())
    return said._replace(observed=observed, entry=said.entry._replace(sequence=observed.sequence))


def _is_lost(written: asyncio.Future[None] | None) -> bool:
    return written is None or (written.done() and written.exception() is not None)


FAR = 10_000
"""How many sequence numbers a start looks through again at most, beside those of open records."""


async def payment_transitions(
    engine: Engine, active: ActivePrograms, facts: Facts
) -> tuple[Transition, ...]:
    """The transitions of payments' monitors at one that windows count already, decision included."""
    loaded = choose_event_type(active, BUILT_IN_EVENT, facts.timestamp)
    if loaded is None or not loaded.monitors:
        return ()
    account, at = active.account.number, facts.timestamp
    reads = loaded.reading.reads(facts, None, active.environment)
    values = await engine.windows.read(account, at, reads)
    return transitions_at(
        engine.watch.standings, account, loaded, at, facts, None, values, active.environment
    )


def count_transitions(
    watch: Watch, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Transitions of a record that is about to be appended."""
    if transitions:
        watch.open.add(sequence)
        watch.standings.add(account, sequence, transitions)


def withdraw_transitions(
    watch: Watch, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """The record could not be kept."""
    if transitions:
        watch.open.discard(sequence)
        watch.standings.undo(account, sequence, transitions)


async def note_transitions(
    engine: Engine, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    """Transitions of a record that is on disk: done once they are listed and in the outbox.

    When the outbox can't be written it is done later (`note_missed`): the record itself is kept.
    """
    if not transitions:
        return
    engine.watch.standings.settle(account, sequence, transitions)
    try:
        await _list_alerts(engine, account, sequence, transitions)
    except Unavailable as error:
        engine.watch.missed[sequence] = (account, transitions)
        get_logger().error(
            "alerts_not_noted", account=account, sequence=sequence, reason=str(error)
        )


async def note_missed(engine: Engine) -> None:
    """Notes what could not be noted when its record was kept. Raises `Unavailable`."""
    missed = engine.watch.missed
    for sequence, (account, transitions) in list(missed.items()):
        if account in engine.state.accounts:
            await _list_alerts(engine, account, sequence, transitions)
        engine.watch.open.discard(sequence)
        missed.pop(sequence, None)


async def _list_alerts(
    engine: Engine, account: int, sequence: int, transitions: Sequence[Transition]
) -> None:
    watch = engine.watch
    urls = _alert_addresses(engine, account)
    noted = min((each for each in watch.open if each != sequence), default=sequence + 1) - 1
    now = engine.clock()

    def work(connection: SqlConnection) -> None:
        outbox.add_alerts(connection, account, sequence, transitions, urls, engine.folder_key, now)
        outbox.set_listed(connection, min(noted, sequence))

    await engine.outbox.write(work)
    watch.open.discard(sequence)
    if any(transition.met for transition in transitions):
        watch.raised.set()


async def recover_alerts(engine: Engine) -> None:
    """Learn how the monitors stand, and put what a crash left behind into the outbox."""
    noted = await engine.outbox.read(outbox.listed_up_to)
    for of, standing in await engine.outbox.read(outbox.standings):
        engine.watch.standings.set(of, standing)
    kinds = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.CHANGE)
    batches = engine.journal.replay(after=noted, kinds=kinds)
    while batch := await _next(batches):
        for entry in batch:
            try:
                transitions = transitions_of(entry.outcome)
            except UNREADABLE as error:
                engine.damage.meet(entry, error)
                continue
            if transitions:
                await _note_again(engine, entry, transitions)
    engine.watch.noted = noted
    await remember_progress(engine)


async def remember_progress(engine: Engine) -> None:
    """Remember that nothing up to the journal's end is left to be noted, now and then."""
    if engine.journal.last_sequence() >= engine.watch.noted + FAR:
        await note_listed(engine)


async def note_listed(engine: Engine) -> None:
    """The next start finds nothing left to be noted up to the journal's end. Raises `Unavailable`."""
    sequence = engine.journal.last_sequence()
    if not engine.watch.open:
        await engine.outbox.write(partial(outbox.set_listed, sequence=sequence))
        engine.watch.noted = sequence


async def purge_alerts(engine: Engine, account: int, before: int) -> None:
    """Remove alerts of event times before `before` (µs), and their deliveries. Raises `Unavailable`."""
    step = partial(outbox.purge_alerts_step, account=account, before=before)
    while await engine.outbox.write(step):
        pass


async def _next(batches: Iterator[list[Entry]]) -> list[Entry] | None:
    with named_damage():
        return await asyncio.to_thread(next, batches, None)


async def _note_again(engine: Engine, entry: Entry, transitions: Sequence[Transition]) -> None:
    urls = _alert_addresses(engine, entry.account)
    now = engine.clock()
    engine.watch.standings.replay(entry.account, entry.sequence, transitions)
    await engine.outbox.write(
        lambda connection: outbox.add_alerts(
            connection, entry.account, entry.sequence, transitions, urls, engine.folder_key, now
        )
    )


def _alert_addresses(engine: Engine, account: int) -> tuple[str, ...]:
    """The addresses that are sent alerts."""
    webhooks = engine.state.accounts[account].webhooks
    return tuple(url for url, webhook in webhooks.items() if "alert.raised" in webhook.kinds)
