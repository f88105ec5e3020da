"""Stored objects as the interface and the terminal show them."""

from __future__ import annotations

from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from tollkeeper.api.http.answers import Analyses, HeldOut, InstantText, ThresholdsView, analyses
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.explain.explain import Explanation
from tollkeeper.engine.explain.records import DecisionItem
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.payment import Payment, PaymentStatus
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.programs.compile.explain import (
    ExplainedHistory,
    ExplainedLet,
    ExplainedSignal,
    RuleExplanation,
    ScorecardExplanation,
)
from tollkeeper.engine.registry.audit import AuditItem
from tollkeeper.engine.stored_records import decode_decision, decode_recorded

_READ = [field for field in structs.fields(Payment) if field.name != "analyze"]
"""All fields of a payment except the requested analyses."""


def _known_payment() -> type[Struct]:
    types = get_type_hints(Payment, include_extras=True)
    fields: list[Any] = [
        (field.name, types[field.name])
        if field.required
        else (field.name, types[field.name], field.default)
        for field in _READ
    ]
    doc = {"__doc__": "A payment as known now, with the analyses of its creation."}
    whole = [*fields, ("analyses", Analyses), ("held_out", HeldOut, False)]
    return msgspec.defstruct(
        "KnownPayment", whole, kw_only=True, frozen=True, omit_defaults=True, namespace=doc
    )


KnownPayment = _known_payment()


class HistoryItem(Struct, frozen=True):
    """One report of the payment, its creation or an update, at its arrival (RFC 3339)."""

    at: InstantText
    kind: Literal["creation", "update"]
    status: PaymentStatus


class PaymentAnswer(Struct, frozen=True):
    payment: KnownPayment  # type: ignore[valid-type]
    history: list[HistoryItem]


class ExplainedScorecard(Struct, frozen=True):
    """The score, signal by signal: contributions are added to the baseline's logit.

    `transactions_shown` is included if aggregates show the parts of only that many transactions.
    """

    scorecard: str
    score: float
    baseline: float
    logit: float
    signals: tuple[ExplainedSignal, ...]
    lets: tuple[ExplainedLet, ...]
    histories: tuple[ExplainedHistory, ...]
    version: int | None
    transactions_shown: int | UnsetType = UNSET


class ExplainedRule(RuleExplanation, frozen=True, kw_only=True):
    """The rule, condition by condition, each with the value of every part of its expression."""

    version: int


class ExplanationView(Struct, frozen=True):
    """Why a payment was decided as it was, from the recorded versions and values.

    `repeated` says whether evaluating it again gave the same decision. `scorecard` and `rule` are
    null if they were not requested.
    """

    payment: str
    at: InstantText
    repeated: bool
    analyses: Analyses
    held_out: HeldOut
    thresholds: ThresholdsView
    scorecard: ExplainedScorecard | None
    rule: ExplainedRule | None


class ExplanationAnswer(Struct, frozen=True):
    explanation: ExplanationView


class DecisionView(Struct, frozen=True):
    """A decision: the payment's summary, and its analyses."""

    id: str
    at: InstantText
    type: str
    currency: str
    amount: float | None
    merchant: str
    analyses: Analyses
    held_out: HeldOut


class AuditView(Struct, frozen=True):
    """A change: who made it, and when; `by` is a key's id or a command, `request` the
    `X-Request-Id` of the request, null for a command.
    """

    at: InstantText
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    request: str | None


def payment_view(states: list[Entry]) -> PaymentAnswer:
    """Return the payment as known now with its analyses, and its history, oldest first."""
    created, latest = states[0], states[-1]
    decision = decode_decision(created.outcome) if created.outcome else Decision()
    payment = decode_recorded(latest.body).payment
    fields = {field.name: getattr(payment, field.name) for field in _READ}
    known = KnownPayment(**fields, analyses=analyses(decision), held_out=decision.held_out)
    return PaymentAnswer(known, [_history_item(state) for state in states])


def decision_view(item: DecisionItem) -> DecisionView:
    payment = item.payment
    return DecisionView(
        payment.id,
        show_instant(item.arrived),
        payment.type,
        payment.currency,
        payment.amount,
        payment.merchant.id,
        analyses(item.decision),
        item.decision.held_out,
    )


def audit_view(item: AuditItem) -> AuditView:
    return AuditView(
        show_instant(item.at), item.by, item.action, item.subject, item.detail, item.request
    )


def explanation_view(explanation: Explanation) -> ExplanationAnswer:
    """Return each signal's contribution, and each condition with the value of every part of its
    expression.
    """
    scorecard = rule = None
    if explanation.scorecard is not None:
        scorecard = _scorecard(explanation.scorecard, explanation.decision.scorecard)
    if explanation.rule is not None and explanation.decision.rule is not None:
        version = explanation.decision.rule.version
        rule = ExplainedRule(**structs.asdict(explanation.rule), version=version)
    challenge, deny = explanation.thresholds.challenge, explanation.thresholds.deny
    return ExplanationAnswer(
        ExplanationView(
            explanation.payment,
            show_instant(explanation.arrived),
            explanation.repeated,
            analyses(explanation.decision),
            explanation.decision.held_out,
            ThresholdsView(challenge / 100, deny / 100),
            scorecard,
            rule,
        )
    )


def _scorecard(scorecard: ScorecardExplanation, version: int | None) -> ExplainedScorecard:
    members = structs.asdict(scorecard) | {"score": scorecard.score / 100}
    return ExplainedScorecard(**members, version=version)


def _history_item(state: Entry) -> HistoryItem:
    return HistoryItem(
        at=show_instant(state.arrived),
        kind="creation" if state.kind == Kind.PAYMENT else "update",
        status=decode_recorded(state.body).payment.status,
    )
