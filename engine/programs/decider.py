"""The one decider: from a payment's facts and the aggregates read for it to a decision.

Live payments, shadows, rollouts, tests, cases, backtests and fits all call it. They differ in their
arguments: which programs, values, score and settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.registry.changes import Thresholds

if TYPE_CHECKING:
    # The index's process reads decisions, and starts faster without the compiler and the checker.
    from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, ProgramValues


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

    `values` are the scorecard's reads, then the rule's; `lost` are the indexes of reads that could
    not be exact. `score` (hundredths) is used where there is no scorecard.
    """
    scorecard, rule, recommends = programs
    if scorecard is None and rule is None and score is None:
        return Decision()
    split = 0
    if scorecard is not None:
        split = len(scorecard.reading.plan.windows)
        score = scorecard.score(facts, values[:split], environment)
    # Without a score there is no reason against the payment.
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
    """The action that the merchant is told: `allow` for a denied payment that is held out."""
    return "allow" if decision.held_out else decision.action


def action_at(score: int, thresholds: Thresholds) -> Action:
    """The action for a score (hundredths) by the account's thresholds alone."""
    if score >= thresholds.deny:
        return "deny"
    return "challenge" if score >= thresholds.challenge else "allow"
