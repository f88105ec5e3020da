"""What was decided and what was changed, page by page, newest first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.registry.accesses import decode_access
from tollkeeper.engine.registry.audit import AuditItem, accessed_item, audit_item
from tollkeeper.engine.registry.changes import decode_change
from tollkeeper.engine.stored_records import decode_decision, decode_recorded


@dataclass(frozen=True, slots=True)
class DecisionItem:
    """A payment as it was created, `arrived` in µs, and what was decided about it."""

    arrived: int
    payment: Payment
    decision: Decision


@dataclass(frozen=True, slots=True)
class DecisionItems:
    """`cursor` continues, None at the end; a page with fewer items than asked for may have one."""

    items: list[DecisionItem]
    cursor: int | None


@dataclass(frozen=True, slots=True)
class AuditItems:
    """`cursor` continues, None at the end."""

    items: list[AuditItem]
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
) -> DecisionItems:
    """Decisions on payments that arrived at `since` (µs) or later, with this action, by this rule."""

    def wanted(entry: Entry) -> bool:
        if action is None and rule is None:
            return True
        decision = _decision(entry)
        if action is not None and answered_action(decision) != action:
            return False
        return rule is None or (decision.rule is not None and decision.rule.name == rule)

    page = await journal.latest(
        account, Kind.PAYMENT, since=since, wanted=wanted, cursor=cursor, limit=limit
    )
    items = await asyncio.to_thread(lambda: [_decision_item(entry) for entry in page.entries])
    return DecisionItems(items, page.cursor)


async def audit_page(
    journal: Journal, account: int, *, since: int = 0, cursor: int | None = None, limit: int = 100
) -> AuditItems:
    """Every change of the account's configuration, and who read of persons, at `since` (µs) or later."""
    pages = [
        await journal.latest(account, kind, since=since, cursor=cursor, limit=limit)
        for kind in (Kind.CHANGE, Kind.ACCESS)
    ]
    found = sorted((entry for page in pages for entry in page.entries), reverse=True)
    goes_on = len(found) > limit or any(page.cursor is not None for page in pages)
    entries = found[:limit]
    items = await asyncio.to_thread(lambda: [_audit_item(entry) for entry in entries])
    return AuditItems(items, entries[-1].sequence if goes_on else None)


def _decision_item(entry: Entry) -> DecisionItem:
    return DecisionItem(entry.arrived, decode_recorded(entry.body).payment, _decision(entry))


def _decision(entry: Entry) -> Decision:
    return decode_decision(entry.outcome) if entry.outcome else Decision()


def _audit_item(entry: Entry) -> AuditItem:
    if entry.kind == Kind.ACCESS:
        return accessed_item(entry.sequence, entry.arrived, decode_access(entry.body))
    return audit_item(decode_change(entry.sequence, entry.arrived, entry.account, entry.body))
