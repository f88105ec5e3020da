"""The one decider: what programs make of a payment's facts and of the aggregates read for it.

Live payments, shadows, rollouts, tests, cases, backtests and fits all decide here. They differ in
what they hand in: which programs, which values, which score, which settings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, ProgramValues
from tollkeeper.engine.registry.changes import Thresholds


class Programs(NamedTuple):
    """The programs that decide one payment; without any, nothing is analysed.

    `recommends` says whether an action was asked for.
    """

    scorecard: LoadedScorecard | None
    rule: LoadedRule | None
    recommends: bool


def decide(
    programs: Programs,
    facts: Any,
    values: ProgramValues,
    environment: Environment,
    thresholds: Thresholds,
    *,
    lost: tuple[int, ...] = (),
    score: int | None = None,
) -> Decision:
    """The decision on a payment: score, rule, action.

    `values` are what the scorecard reads, then what the rule reads; `lost` are the indexes of those
    that could not be exact. `score` (hundredths) stands in where there is no scorecard.
    """
    scorecard, rule, recommends = programs
    if scorecard is None and rule is None and score is None:
        return Decision()
    split = 0
    if scorecard is not None:
        split = len(scorecard.reading.plan.windows)
        score = scorecard.score(facts, values[:split], environment)
    # Without any score nothing speaks against the payment.
    action = action_at(score or 0, thresholds)
    applied = None
    if rule is not None:
        met = rule.decide(facts, score, values[split:], environment)
        applied, action = rule.applied[met], rule.actions[met] or action
    return Decision(
        action=action if recommends else None,
        score=score,
        rule=applied,
        scorecard=0 if scorecard is None else scorecard.version,
        reads=tuple(values),
        lost=lost,
    )


def answered_action(decision: Decision) -> Action | None:
    """What the merchant is told to do: a denial that is held out passes."""
    return "allow" if decision.held_out else decision.action


def action_at(score: int, thresholds: Thresholds) -> Action:
    """What a score (hundredths) alone leads to, by the account's thresholds."""
    if score >= thresholds.deny:
        return "deny"
    return "challenge" if score >= thresholds.challenge else "allow"
