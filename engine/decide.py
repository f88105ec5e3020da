"""The way of one payment: facts, windows, scorecard, rule, action, journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.events.noting import announce, note_turns, take_back
from tollkeeper.engine.events.payment_monitors import payment_turns
from tollkeeper.engine.facts.facts import Facts, ReadClient, derive, record
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind
from tollkeeper.engine.monitors.alerts import Turn, watched
from tollkeeper.engine.programs.active import (
    InForce,
    Shadow,
    choose_rule,
    choose_scorecard,
    choose_shadows,
)
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, Values
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadows.queue import Waiting
from tollkeeper.engine.velocity.contract import (
    NotWholeError,
    Observation,
    Read,
    Record,
    State,
    Window,
    Windows,
)

encode = msgspec.json.Encoder().encode

Answer = Callable[[Decision], Idempotency | None]


class Programs(NamedTuple):
    """The programs that look at one payment."""

    scorecard: LoadedScorecard | None
    rule: LoadedRule | None
    recommends: bool


async def create(
    engine: Engine, force: InForce, payment: Payment, arrived: int, answer: Answer | None = None
) -> Decision:
    """Decide a new payment; done when it is on disk. `arrived` in µs since the epoch.

    `answer`, when given, makes what is kept for the request's idempotency key. Raises `Taken` for
    an id in use, `Unavailable` or `Overloaded` when the payment can't be kept; nothing of it is
    left then.
    """
    account = force.account.number
    if await engine.journal.exists(account, Kind.PAYMENT, payment.id):
        raise Taken(payment.id)
    shadows = choose_shadows(force, payment)
    observed, decision = await analyse(
        engine.windows, engine.clients, force, payment, arrived, shadows
    )
    facts: Facts = observed.record.state.payment
    turns = await payment_turns(engine, force, facts)
    entry = Entry(
        observed.sequence,
        account,
        Kind.PAYMENT,
        payment.id,
        arrived,
        facts.timestamp,
        encode(record(facts)),
        encode(watched(decision, turns) if turns else decision),
    )
    await keep(engine, observed, entry, answer and answer(decision), turns)
    if shadows:
        for waiting in beside(force, payment, shadows, observed, decision):
            engine.shadows.add(waiting)
    return decision


async def analyse(
    windows: Windows,
    clients: ReadClient,
    force: InForce,
    payment: Payment,
    arrived: int,
    shadows: Sequence[Shadow] = (),
) -> tuple[Observation, Decision]:
    """What is decided about a payment, which its windows count from now on.

    What `shadows` read is observed at the same sequence number: it stands behind the decision's own
    reads, which are all that the decision sees.
    """
    programs = choose(force, payment)
    facts = derive(payment, arrived, clients)
    own, reads = asked(programs, facts)
    seen = Record(force.account.number, payment.id, facts.timestamp, arrived, State(facts))
    theirs = [read for shadow in shadows for read in shadow.reads(facts)]
    try:
        observed = await windows.observe(seen, [*reads, *theirs], own)
    except NotWholeError:
        if not theirs:
            raise
        observed = await windows.observe(seen, reads, own)
    values, lost = observed.values, observed.lost
    if theirs:
        count = len(values) - len(theirs)
        values, lost = values[:count], tuple(index for index in lost if index < count)
    decision = decide(force, programs, facts, values, lost)
    return await windows.settle(observed, decision), decision


def asked(programs: Programs, facts: Facts) -> tuple[list[tuple[Window, ...]], list[Read]]:
    """What the programs read: in the payment's own groups, or in those that they name."""
    readings = [each.reading for each in (programs.scorecard, programs.rule) if each is not None]
    own = [each.plan.windows for each in readings if each.plan.own]
    if len(own) == len(readings):
        return own, []
    return [], [read for each in readings for read in each.reads(facts)]


def beside(
    force: InForce,
    payment: Payment,
    shadows: Sequence[Shadow],
    observed: Observation,
    decision: Decision,
) -> Iterator[Waiting]:
    """For each shadow, how to find what it would have decided in place of what did."""
    facts: Facts = observed.record.state.payment
    position = len(decision.reads)
    for shadow in shadows:
        end = position + len(shadow.loaded.reading.plan.windows)
        evaluate = partial(
            _instead, force, payment, shadow, facts, decision, observed.values[position:end]
        )
        trial = (force.account.number, shadow.kind, shadow.name, shadow.loaded.version)
        yield Waiting(trial, payment.id, facts.timestamp, decision, evaluate)
        position = end


def _instead(
    force: InForce,
    payment: Payment,
    shadow: Shadow,
    facts: Facts,
    decision: Decision,
    read: Values,
) -> Decision:
    """The decision with the shadow in the place of its rule or scorecard."""
    # Reads them again: keys that failed beside the decision fail here for all to see.
    theirs = [value for _, value in zip(shadow.loaded.reading.reads(facts), read, strict=True)]
    chosen = choose(force, payment)
    assert chosen.scorecard is not None
    split = len(chosen.scorecard.reading.plan.windows)
    of_scorecard, of_rule = decision.reads[:split], decision.reads[split:]
    if isinstance(shadow.loaded, LoadedRule):
        programs, values = chosen._replace(rule=shadow.loaded), (*of_scorecard, *theirs)
    else:
        programs, values = chosen._replace(scorecard=shadow.loaded), (*theirs, *of_rule)
    return decide(force, programs, facts, values, ())


def choose(force: InForce, payment: Payment) -> Programs:
    """Which programs look at a payment: none unless it asks for an analysis."""
    rule = choose_rule(force, payment)
    recommends = payment.analyze is not None and payment.analyze.bot_behaviour is True
    scored = recommends or rule is not None
    return Programs(choose_scorecard(force, payment) if scored else None, rule, recommends)


def decide(
    force: InForce, programs: Programs, facts: Facts, values: Values, lost: tuple[int, ...]
) -> Decision:
    """The decision, from the facts and the values read: score, rule, action."""
    scorecard, rule, recommends = programs
    if scorecard is None:
        return Decision()
    split = len(scorecard.reading.plan.windows)
    score = scorecard.score(facts, values[:split], force.environment)
    applied, action = None, by_thresholds(score, force.account.settings.thresholds)
    if rule is not None:
        met = rule.decide(facts, score, values[split:], force.environment)
        applied, action = apply(rule, met, action)
    return Decision(
        action=action if recommends else None,
        score=score,
        rule=applied,
        scorecard=scorecard.version,
        reads=tuple(values),
        lost=lost,
    )


def apply(rule: LoadedRule, met: int, default: Action) -> tuple[AppliedRule, Action]:
    """The rule with its met condition, and its action; `met` -1 is none of them."""
    program = rule.rule
    if met < 0:
        return AppliedRule(program.name, rule.version), program.otherwise or default
    condition = program.conditions[met]
    return (
        AppliedRule(program.name, rule.version, condition.name, condition.title),
        condition.action,
    )


def by_thresholds(score: int, thresholds: Thresholds) -> Action:
    """The account's default configuration: what a score (hundredths) alone leads to."""
    if score >= thresholds.deny:
        return "deny"
    return "challenge" if score >= thresholds.challenge else "allow"


async def keep(
    engine: Engine,
    observed: Observation,
    entry: Entry,
    idempotency: Idempotency | None = None,
    turns: Sequence[Turn] = (),
) -> None:
    """Append the entry; when that fails, leave nothing of it in the windows and the monitors.

    Alerts among `turns` are in the outbox at the end.
    """
    if turns:
        announce(engine.watch, entry.account, entry.sequence, turns)
    kept = None
    try:
        kept = engine.journal.append(entry, idempotency)
        await kept
    finally:
        # Also in a request that was cancelled: it is woken only once its entry is kept or lost.
        if kept is None or kept.exception() is not None:
            take_back(engine.watch, entry.account, entry.sequence, turns)
            await engine.windows.withdraw(observed)
    if turns:
        await note_turns(engine, entry.account, entry.sequence, turns)
