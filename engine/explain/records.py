"""Decisions and the audit log, page by page, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.label import Label, decode_label
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.registry.accesses import decode_access
from tollkeeper.engine.registry.audit import AuditItem, accessed_item, audit_item
from tollkeeper.engine.registry.changes import decode_change
from tollkeeper.engine.stored_records import decode_decision, decode_recorded

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DecisionItem:
    """A payment as it was created, `arrived` in µs, and what was decided about it."""

    arrived: int
    payment: Payment
    decision: Decision


@dataclass(frozen=True, slots=True)
class ItemPage(Generic[T]):
    """`cursor` continues, None at the end; a page with fewer items than asked for may have one."""

    items: list[T]
    cursor: int | None


async def decided_page(
    journal: Journal,
    account: int,
    *,
    since: int = 0,
    action: Action | None = None,
    rule: str | None = None,
    cursor: int | None = None,
    limit: int = 100,
) -> ItemPage[DecisionItem]:
    """Decisions on payments that arrived at `since` (µs) or later, with this action, by this rule."""

    def matches(entry: Entry) -> bool:
        if action is None and rule is None:
            return True
        decision = _decision(entry)
        if action is not None and answered_action(decision) != action:
            return False
        return rule is None or (decision.rule is not None and decision.rule.name == rule)

    page = await journal.latest(
        account, Kind.PAYMENT, since=since, wanted=matches, cursor=cursor, limit=limit
    )
    items = await asyncio.to_thread(lambda: [_decision_item(entry) for entry in page.entries])
    return ItemPage(items, page.cursor)


AUDIT_KINDS: Mapping[str, Kind] = {
    "change": Kind.CHANGE,
    "access": Kind.ACCESS,
    "verdict": Kind.LABEL,
}
"""The kinds of items in the audit log, with the kind of entry that each is made of."""


class AuditFilter(NamedTuple):
    """Which items of the audit log a page has: those that equal every value that is not None."""

    by: str | None = None
    action: str | None = None
    subject: str | None = None

    def takes(self, item: AuditItem) -> bool:
        values = item.by, item.action, item.subject
        return all(wanted in (None, own) for wanted, own in zip(self, values, strict=True))


WHOLE_AUDIT = AuditFilter()


async def audit_page(
    journal: Journal,
    account: int,
    *,
    since: int = 0,
    wanted: AuditFilter = WHOLE_AUDIT,
    kind: str | None = None,
    cursor: int | None = None,
    limit: int = 100,
) -> ItemPage[AuditItem]:
    """The wanted changes of the account's configuration, reads of personal data, and people's labels, at
    `since` (µs) or later, newest first; with a `kind`, only items of that one of `AUDIT_KINDS`.
    """

    def matches(entry: Entry) -> bool:
        return _is_audited(entry) and (wanted == WHOLE_AUDIT or wanted.takes(_audit_item(entry)))

    pages = [
        await journal.latest(account, each, since=since, wanted=matches, cursor=cursor, limit=limit)
        for each in _entry_kinds(kind, wanted.action)
    ]
    # Older entries wait for the next page: a kind whose page is full may have others before them.
    complete_from = max((page.cursor or 0 for page in pages), default=0)
    complete = sorted(
        (each for page in pages for each in page.entries if each.sequence >= complete_from),
        reverse=True,
    )
    entries = complete[:limit]
    items = await asyncio.to_thread(lambda: [_audit_item(entry) for entry in entries])
    ends_at = entries[-1].sequence if len(complete) > limit else complete_from
    return ItemPage(items, ends_at or None)


def _entry_kinds(kind: str | None, action: str | None) -> tuple[Kind, ...]:
    """The kinds of entries to read: there are far more verdicts and accesses than changes."""
    kinds = set(AUDIT_KINDS.values()) if kind is None else {AUDIT_KINDS[kind]}
    if action is not None:
        kinds &= {_entry_kind(action)}
    return tuple(sorted(kinds))


def _entry_kind(action: str) -> Kind:
    if action.startswith("verdict_"):
        return Kind.LABEL
    return Kind.ACCESS if action.startswith("personal_data_") else Kind.CHANGE


def _is_audited(entry: Entry) -> bool:
    """Whether the audit log shows a label: only those that people set; files bring thousands."""
    return entry.kind != Kind.LABEL or decode_label(entry.body).source == "review"


def _decision_item(entry: Entry) -> DecisionItem:
    return DecisionItem(entry.arrived, decode_recorded(entry.body).payment, _decision(entry))


def _decision(entry: Entry) -> Decision:
    return decode_decision(entry.outcome) if entry.outcome else Decision()


def _audit_item(entry: Entry) -> AuditItem:
    if entry.kind == Kind.ACCESS:
        return accessed_item(entry.sequence, entry.arrived, decode_access(entry.body))
    if entry.kind == Kind.LABEL:
        return _judged_item(entry, decode_label(entry.body))
    return audit_item(decode_change(entry))


def _judged_item(entry: Entry, label: Label) -> AuditItem:
    """An item for a person's label, or for its withdrawal."""
    action = "verdict_taken_back" if label.label is None else "verdict_given"
    detail = {} if label.label is None else {"label": label.label, "reason": label.reason}
    return AuditItem(entry.sequence, entry.arrived, label.by, action, f"payment {entry.id}", detail)
