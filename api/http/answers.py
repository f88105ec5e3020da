"""Answers of the payment operations (docs/api.md, "Analysis")."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.programs.decider import answered_action

InstantText: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""An RFC 3339 timestamp, written in UTC."""


class BotBehaviour(Struct, frozen=True, gc=False):
    """`score` is between 0 and 1, with two decimals."""

    action: Action
    score: float


class MetCondition(Struct, frozen=True, gc=False):
    id: str
    name: str | None


class RuleResult(Struct, frozen=True, gc=False):
    """`condition` is null if none was met."""

    name: str
    version: int
    condition: MetCondition | None


class Analyses(Struct, frozen=True, gc=False):
    """`bot_behaviour` is included only if it was requested; `rule` is null if none was applied."""

    rule: RuleResult | None
    bot_behaviour: BotBehaviour | UnsetType = UNSET


HeldOut = Annotated[
    bool,
    Meta(
        description=(
            "Whether the payment was denied but let pass, to learn its outcome; `analyses` "
            "has the action that was answered."
        )
    ),
]


class PaymentResult(Struct, frozen=True, gc=False):
    id: str
    status: PaymentStatus
    analyses: Analyses


class PaymentCreated(Struct, frozen=True, gc=False):
    payment: PaymentResult


class UpdateResult(Struct, frozen=True, gc=False):
    id: str
    status: PaymentStatus


class PaymentUpdated(Struct, frozen=True, gc=False):
    payment: UpdateResult


class ThresholdsView(Struct, frozen=True):
    """The scores from which the account challenges and denies."""

    challenge: float
    deny: float


def analyses(decision: Decision) -> Analyses:
    """Return the analyses of a decision, with the action that was answered."""
    rule = None if decision.rule is None else _rule(decision.rule)
    action = answered_action(decision)
    if action is None or decision.score is None:
        return Analyses(rule)
    return Analyses(rule, BotBehaviour(action, decision.score / 100))


def _rule(applied: AppliedRule) -> RuleResult:
    met = None if applied.condition is None else MetCondition(applied.condition, applied.title)
    return RuleResult(applied.name, applied.version, met)
