"""Which journal entries webhooks get notices of; `enter_alerts.py` handles alerts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import decode_label
from tollkeeper.engine.monitors.outbox import Notice
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.registry.changes import Activated, DecidedFilter, NoticeKind, decode_change
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.stored_records import decode_decision

FOLLOWED: Final[dict[NoticeKind, Kind]] = {
    "payment.decided": Kind.PAYMENT,
    "payment.updated": Kind.UPDATE,
    "label.created": Kind.LABEL,
    "rule.published": Kind.CHANGE,
}
"""The kinds of notices that journal entries lead to, each with the kind of entry."""
_KINDS = {entry_kind: kind for kind, entry_kind in FOLLOWED.items()}


def followed_kinds(webhooks: Collection[Webhook]) -> dict[NoticeKind, Kind]:
    """Those of `FOLLOWED` that any of the webhooks gets."""
    wanted = {kind for webhook in webhooks for kind in webhook.kinds}
    return {kind: entry_kind for kind, entry_kind in FOLLOWED.items() if kind in wanted}


def notices_of(entry: Entry, webhooks: Collection[Webhook]) -> Iterator[Notice]:
    """The notices of a new entry, one for each webhook that gets it."""
    kind = _KINDS[Kind(entry.kind)]
    wanting = [each for each in webhooks if entry.sequence > each.kinds.get(kind, entry.sequence)]
    if not wanting:
        return
    subject = _subject(kind, entry)
    if subject is None:
        return
    decision = decode_decision(entry.outcome or b"{}") if kind == "payment.decided" else None
    for webhook in wanting:
        if decision is None or _is_selected(decision, webhook.only):
            yield Notice(entry.account, webhook.url, kind, entry.sequence, subject=subject)


def _subject(kind: NoticeKind, entry: Entry) -> str | None:
    """The payment's id or the rule's name; None when the entry leads to no notice."""
    if kind == "label.created":
        return None if decode_label(entry.body).label is None else entry.id
    if kind == "rule.published":
        change = decode_change(entry).change
        return change.name if isinstance(change, Activated) and change.kind == "rule" else None
    return entry.id


def _is_selected(decision: Decision, only: DecidedFilter) -> bool:
    """Whether there was a decision, and it matches the filter."""
    rule = decision.rule
    return (
        not (decision.action is None and rule is None)
        and (not only.action or answered_action(decision) in only.action)
        and (not only.rule or (rule is not None and rule.name in only.rule))
        and (not only.condition or (rule is not None and rule.condition in only.condition))
    )
