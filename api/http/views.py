"""What reading a payment answers (docs/api.md, "Beside payments")."""

from __future__ import annotations

from typing import Any

import msgspec

from tollkeeper.api.http.answers import Analyses, analyses
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.explain.explain import Explanation
from tollkeeper.engine.explain.records import Decided
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.registry.audit import AuditItem
from tollkeeper.engine.update import decode_decision, decode_recorded


class HistoryItem(msgspec.Struct, frozen=True):
    """One report of the payment: its creation or an update, at its arrival (RFC 3339)."""

    at: str
    kind: str
    status: str


def payment_view(states: list[Entry]) -> dict[str, Any]:
    """The payment as known now with its analyses, and its history, oldest first."""
    created, latest = states[0], states[-1]
    decision = decode_decision(created.outcome) if created.outcome else Decision()
    return {
        "payment": _shown(decode_recorded(latest.body).payment, analyses(decision)),
        "history": [_history_item(state) for state in states],
    }


def decided_view(item: Decided) -> dict[str, Any]:
    """One decision among others: the payment in short, and its analyses."""
    payment = item.payment
    return {
        "id": payment.id,
        "at": show_instant(item.arrived),
        "type": payment.type,
        "currency": payment.currency,
        "amount": payment.amount,
        "merchant": payment.merchant.id,
        "analyses": analyses(item.decision),
    }


def audit_view(item: AuditItem) -> dict[str, Any]:
    return {
        "at": show_instant(item.at),
        "by": item.by,
        "action": item.action,
        "subject": item.subject,
        "detail": item.detail,
    }


def explanation_view(found: Explanation) -> dict[str, Any]:
    """Each signal's contribution, each condition with the value of every part of its expression."""
    shown: dict[str, Any] = {
        "payment": found.payment,
        "at": show_instant(found.arrived),
        "repeated": found.repeated,
        "analyses": analyses(found.decision),
        "thresholds": {
            "challenge": found.thresholds.challenge / 100,
            "deny": found.thresholds.deny / 100,
        },
        "scorecard": None,
        "rule": None,
    }
    if found.scorecard is not None:
        card = msgspec.to_builtins(found.scorecard)
        shown["scorecard"] = card | {
            "version": found.decision.scorecard,
            "score": found.scorecard.score / 100,
        }
    if found.rule is not None and found.decision.rule is not None:
        version = {"version": found.decision.rule.version}
        shown["rule"] = msgspec.to_builtins(found.rule) | version
    return {"explanation": shown}


def _shown(payment: Payment, found: Analyses) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(payment)
    shown.pop("analyze", None)
    shown["analyses"] = msgspec.to_builtins(found)
    return shown


def _history_item(state: Entry) -> HistoryItem:
    return HistoryItem(
        at=show_instant(state.arrived),
        kind="creation" if state.kind == Kind.PAYMENT else "update",
        status=decode_recorded(state.body).payment.status,
    )
