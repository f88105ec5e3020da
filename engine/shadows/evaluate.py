"""Evaluate a payment's shadows, from the values that were read with its decision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tollkeeper.engine.decide import DecidedPayment
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.programs.active import ActivePrograms, Shadow
from tollkeeper.engine.programs.decider import Programs, decide
from tollkeeper.engine.programs.loaded import LoadedRule, ProgramValues
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadow_queue import QueuedShadow


def queue_shadows(engine: Engine, decided: DecidedPayment) -> None:
    """Queue the shadows of a kept payment, to be evaluated after the response."""
    for waiting in _evaluations(decided):
        engine.shadows.add(waiting)


def _evaluations(decided: DecidedPayment) -> Iterator[QueuedShadow]:
    active, decision, observed = decided.active, decided.decision, decided.pending.observed
    facts: Facts = observed.record.state.payment
    position = len(decision.reads)
    for shadow in decided.shadows:
        end = position + len(shadow.loaded.reading.plan.windows)
        evaluate = partial(
            _decide_by_shadow,
            active,
            decided.programs,
            shadow,
            facts,
            decision,
            observed.values[position:end],
        )
        trial = (active.account.number, shadow.kind, shadow.name, shadow.loaded.version)
        yield QueuedShadow(trial, facts.payment.id, facts.timestamp, decision, evaluate)
        position = end


def _decide_by_shadow(
    active: ActivePrograms,
    programs: Programs,
    shadow: Shadow,
    facts: Facts,
    decision: Decision,
    read: ProgramValues,
) -> Decision:
    """The decision that the payment would have got with the shadow as its rule or scorecard."""
    # Computing the keys again fails if it failed during the decision; that is then recorded.
    again = shadow.loaded.reading.reads(facts, active.environment)
    values = [value for _, value in zip(again, read, strict=True)]
    assert programs.scorecard is not None
    split = len(programs.scorecard.reading.plan.windows)
    of_scorecard, of_rule = decision.reads[:split], decision.reads[split:]
    if isinstance(shadow.loaded, LoadedRule):
        programs, values = programs._replace(rule=shadow.loaded), [*of_scorecard, *values]
    else:
        programs, values = programs._replace(scorecard=shadow.loaded), [*values, *of_rule]
    return decide(programs, facts, values, active.environment, active.account.settings.thresholds)
