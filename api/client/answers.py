"""Answers as a client reads them: a later service may answer other actions and statuses, and more
members (docs/api.md, "Stability").
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from tollkeeper.api.http.answers import RuleResult


class BotAnalysis(Struct, frozen=True):
    """`action` is `allow`, `challenge` or `deny`; `score` is between 0 and 1, with two decimals."""

    action: str
    score: float


class PaymentAnalyses(Struct, frozen=True):
    """`bot_behaviour` is there only if it was requested; `rule` is None if none was applied."""

    rule: RuleResult | None
    bot_behaviour: BotAnalysis | UnsetType = UNSET


class CreatedPayment(Struct, frozen=True):
    """A payment that was created."""

    id: str
    status: str
    analyses: PaymentAnalyses


class CreationAnswer(Struct, frozen=True):
    payment: CreatedPayment


class ReportedPayment(Struct, frozen=True):
    """A payment whose status was reported."""

    id: str
    status: str


class UpdateAnswer(Struct, frozen=True):
    payment: ReportedPayment
