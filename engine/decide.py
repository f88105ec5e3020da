"""The steps of a new payment up to its decision: facts, windows, scorecard, rule, action.

`keep` then puts it into the journal; only after that is it answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import Facts, derive, record
from tollkeeper.engine.intake.forced import UNFORCED, ForcedOutcome
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending, payment_transitions
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.monitors.alerts import add_transitions
from tollkeeper.engine.programs.active import (
    ActivePrograms,
    Shadow,
    choose_programs,
    choose_shadows,
    is_held_out,
)
from tollkeeper.engine.programs.decider import Programs, decide
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.velocity.contract import (
    NotWholeError,
    Observation,
    Read,
    Record,
    State,
    Window,
)
from tollkeeper.engine.velocity.windows import Windows


class DecidedPayment(Struct, frozen=True):
    """A decision that is still to be kept, the programs that made it, and the shadows to evaluate: the
    values that they read come after the decision's."""

    active: ActivePrograms
    pending: Pending
    programs: Programs
    decision: Decision
    shadows: tuple[Shadow, ...]


async def decide_payment(
    engine: Engine,
    account: int,
    payment: Payment,
    arrived: int,
    forced: ForcedOutcome = UNFORCED,
) -> DecidedPayment:
    """Count and decide a new payment. `arrived` in µs since the epoch; see `Arrivals`.

    Raises `Taken` for an id in use, `KeyError` for an account that was deleted meanwhile.
    """
    if await engine.journal.exists(account, Kind.PAYMENT, payment.id):
        raise Taken(payment.id)
    # A publication or deletion during that look-up precedes this payment.
    active, arrived = engine.active[account], engine.arrivals.put_in_order(arrived)
    facts = derive(payment, arrived, engine.clients)
    programs = choose_programs(active, payment, arrived)
    shadows = choose_shadows(active, payment, arrived)
    observed, decision = await analyse(
        engine.windows,
        account,
        facts,
        programs,
        active.environment,
        active.account.settings.thresholds,
        [read for shadow in shadows for read in shadow.reads(facts, active.environment)],
        forced,
    )
    if (
        decision.action == "deny"
        and forced == UNFORCED
        and is_held_out(active, payment, arrived, engine.folder_key)
    ):
        decision = replace(decision, held_out=True)
    try:
        transitions = await payment_transitions(engine, active, facts)
        entry = Entry(
            observed.sequence,
            account,
            Kind.PAYMENT,
            payment.id,
            arrived,
            facts.timestamp,
            encode_stored(record(facts)),
            encode_stored(add_transitions(decision, transitions) if transitions else decision),
        )
    except BaseException:
        await engine.windows.withdraw(observed)
        raise
    return DecidedPayment(
        active, Pending(observed, entry, transitions), programs, decision, shadows
    )


async def analyse(
    windows: Windows,
    account: int,
    facts: Facts,
    programs: Programs,
    environment: Environment,
    thresholds: Thresholds,
    shadow_reads: Sequence[Read] = (),
    forced: ForcedOutcome = UNFORCED,
) -> tuple[Observation, Decision]:
    """Count a payment, decide it by the aggregates read at that moment, and count the decision.

    `shadow_reads` are read at the same moment: in the observation, their values come after those of
    the decision, which does not use them. They are left out while one of their windows is not whole.
    A `forced` score replaces the scorecard's, a forced action the decided one.
    """
    scored = forced.score is not None and programs.scorecard is not None
    score = forced.hundredths if scored else None
    if score is not None:
        programs = programs._replace(scorecard=None)
    own, reads = decision_reads(programs, facts, environment)
    state = State(facts, environment=environment)
    counted = Record(account, facts.payment.id, facts.timestamp, facts.arrived, state)
    try:
        observed = await windows.observe(counted, [*reads, *shadow_reads], own)
    except NotWholeError:
        if not shadow_reads:
            raise
        observed, shadow_reads = await windows.observe(counted, reads, own), ()
    values, lost = observed.values, observed.lost
    if shadow_reads:
        count = len(values) - len(shadow_reads)
        values, lost = values[:count], tuple(index for index in lost if index < count)
    try:
        decision = decide(programs, facts, values, environment, thresholds, lost=lost, score=score)
        if forced.action is not None and decision.action is not None:
            decision = replace(decision, action=forced.action)
        return await windows.settle(observed, decision), decision
    except BaseException:
        await windows.withdraw(observed)
        raise


def decision_reads(
    programs: Programs, facts: Facts, environment: Environment
) -> tuple[list[tuple[Window, ...]], list[Read]]:
    """The programs' reads: windows of the payment's own groups, or, if a program reads other
    groups, window and group of each."""
    readings = [each.reading for each in (programs.scorecard, programs.rule) if each is not None]
    own = [each.plan.windows for each in readings if each.plan.own]
    if len(own) == len(readings):
        return own, []
    return [], [read for each in readings for read in each.reads(facts, environment)]
