"""The bodies of webhook notices: one per kind, with the object as the interface shows it."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.api.http.alerts import AlertView, alert_view
from tollkeeper.api.http.answers import HeldOut, InstantText, PaymentResult, UpdateResult, analyses
from tollkeeper.api.http.examples import ALERT, ANALYSES
from tollkeeper.api.http.labels import LabelView, label_view
from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import decode_label
from tollkeeper.engine.monitors.outbox import Alert
from tollkeeper.engine.registry.changes import Activated, NoticeKind, decode_change
from tollkeeper.engine.stored_records import decode_decision, decode_recorded


class SentAlert(Struct, frozen=True):
    """A monitor raised an alert."""

    kind: Literal["alert.raised"]
    alert: AlertView


class SentDecision(Struct, frozen=True):
    """A payment was decided; it is shown as in the answer to its creation."""

    kind: Literal["payment.decided"]
    at: InstantText
    payment: PaymentResult
    held_out: HeldOut


class SentUpdate(Struct, frozen=True):
    """A payment was updated."""

    kind: Literal["payment.updated"]
    at: InstantText
    payment: UpdateResult


class SentLabel(Struct, frozen=True):
    """A source set or removed the label of a payment."""

    kind: Literal["label.created"]
    at: InstantText
    label: LabelView


class PublishedRule(Struct, frozen=True):
    name: str
    version: int


class SentPublication(Struct, frozen=True):
    """A version of a rule became active."""

    kind: Literal["rule.published"]
    at: InstantText
    rule: PublishedRule


SentNotice: TypeAlias = SentAlert | SentDecision | SentUpdate | SentLabel | SentPublication

_AT = "2026-09-10T00:26:40Z"
NOTICES: Final[dict[NoticeKind, tuple[type[Struct], dict[str, Any]]]] = {
    "alert.raised": (SentAlert, {"alert": ALERT}),
    "payment.decided": (
        SentDecision,
        {
            "at": _AT,
            "payment": {"id": "order-1001-1", "status": "initiated", "analyses": ANALYSES},
            "held_out": False,
        },
    ),
    "payment.updated": (
        SentUpdate,
        {"at": _AT, "payment": {"id": "order-1001-1", "status": "succeeded"}},
    ),
    "label.created": (
        SentLabel,
        {
            "at": _AT,
            "label": {
                "payment": "order-1001-1",
                "source": "chargeback",
                "label": "fraud",
                "reason": None,
                "at": _AT,
                "by": "toll_a1b2c3d4",
            },
        },
    ),
    "rule.published": (SentPublication, {"at": _AT, "rule": {"name": "checkout", "version": 3}}),
}
"""Each kind's body type, and an example without `kind`."""

_NAMED_BY = {"alert": "type", "payment": "id", "label": "payment", "rule": "name"}
"""The member of the example that a sample replaces by `sample`."""

_encode = msgspec.json.Encoder().encode


def notice_body(key: FolderKey, of: Entry | Alert) -> bytes:
    """Return the body for an alert, or for a journal entry that some webhook wants."""
    if isinstance(of, Alert):
        return _encode(SentAlert("alert.raised", alert_view(key, of)))
    return _encode(_sent_notice(of))


def sample_body(kind: NoticeKind) -> bytes:
    """Return a sample notice: the kind's example, with `sample` in place of an id."""
    _, example = NOTICES[kind]
    (name,) = example.keys() - {"at", "held_out"}
    marked = {**example[name], _NAMED_BY[name]: "sample"}
    return _encode({"kind": kind, **example, name: marked})


def _sent_notice(entry: Entry) -> SentNotice:
    at = show_instant(entry.arrived)
    match Kind(entry.kind):
        case Kind.LABEL:
            label = decode_label(entry.body)
            return SentLabel("label.created", at, label_view(entry.id, label))
        case Kind.CHANGE:
            recorded = decode_change(entry)
            assert isinstance(recorded.change, Activated)
            rule = PublishedRule(recorded.change.name, recorded.change.number)
            return SentPublication("rule.published", at, rule)
    payment = decode_recorded(entry.body).payment
    if entry.kind == Kind.UPDATE:
        return SentUpdate("payment.updated", at, UpdateResult(payment.id, payment.status))
    decision = decode_decision(entry.outcome or b"{}")
    shown = PaymentResult(payment.id, payment.status, analyses(decision))
    return SentDecision("payment.decided", at, shown, decision.held_out)
