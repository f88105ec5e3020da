"""What the payment operations answer (docs/api.md, "Analysis")."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.programs.decider import answered_action

InstantText: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339 text, which the service writes in UTC."""


class BotBehaviour(Struct, frozen=True, gc=False):
    """`score` is between 0 and 1, of two decimals."""

    action: Action
    score: float


class MetCondition(Struct, frozen=True, gc=False):
    id: str
    name: str | None


class RuleResult(Struct, frozen=True, gc=False):
    """`condition` is null when none was met."""

    name: str
    version: int
    condition: MetCondition | None


class Analyses(Struct, frozen=True, gc=False):
    """`bot_behaviour` is there only when it was asked for; `rule` is null when none was applied."""

    rule: RuleResult | None
    bot_behaviour: BotBehaviour | UnsetType = UNSET


HeldOut = Annotated[
    bool,
    Meta(
        description="Whether it was denied and let pass all the same, to see what becomes of it: "
        "`analyses` has the action that was answered."
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
    """The score from which the account challenges, and from which it denies."""

    challenge: float
    deny: float


def analyses(decision: Decision) -> Analyses:
    """The analyses of a decision, as every answer shows them: with the action that was answered."""
    rule = None if decision.rule is None else _rule(decision.rule)
    action = answered_action(decision)
    if action is None or decision.score is None:
        return Analyses(rule)
    return Analyses(rule, BotBehaviour(action, decision.score / 100))


def _rule(applied: AppliedRule) -> RuleResult:
    met = None if applied.condition is None else MetCondition(applied.condition, applied.title)
    return RuleResult(applied.name, applied.version, met)
