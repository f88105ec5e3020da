"""The audit log: the journal's changes read back, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.registry.accesses import DataAccess
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    AccountDeleted,
    AccountResumed,
    AccountSuspended,
    Activated,
    AlertMarked,
    Change,
    Deactivated,
    EntriesChanged,
    EntriesWanted,
    KeyCreated,
    KeyRevoked,
    ListMade,
    ListReplaced,
    PersonErased,
    ProposalRefused,
    Proposed,
    RecordedChange,
    RolloutCleared,
    RolloutSet,
    ScorecardShipped,
    SearchDropped,
    SearchSaved,
    SessionEnded,
    SessionStarted,
    SettingsChanged,
    ShadowCleared,
    ShadowSet,
    UserLinkMade,
    UserRemoved,
    UserSet,
    VersionStored,
    WebhookRemoved,
    WebhookSet,
)
from tollkeeper.engine.registry.settings import show_settings
from tollkeeper.engine.registry.versions import NOUNS


class AuditItem(Struct, frozen=True):
    """`at` in µs; `by` a key's id or a command; `action` the name of the change; `request` the id of
    the HTTP request that asked for it.
    """

    sequence: int
    at: int
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    request: str | None = None


# What is shown of a change: a new field stays hidden until it stands here.
_DETAILS: Mapping[type[Change], tuple[str, ...]] = {
    AccountCreated: (),
    AccountSuspended: (),
    AccountResumed: (),
    AccountDeleted: (),
    KeyRevoked: (),
    UserSet: ("role", "merchants"),
    UserRemoved: (),
    UserLinkMade: (),
    SessionEnded: (),
    VersionStored: ("number", "checksum", "language"),
    ScorecardShipped: ("checksum", "language"),
    Deactivated: (),
    ShadowSet: ("number",),
    ShadowCleared: (),
    RolloutSet: ("number", "percent", "by"),
    ProposalRefused: ("reason",),
    AlertMarked: ("state", "note"),
    SearchSaved: ("query",),
    SearchDropped: (),
    RolloutCleared: (),
    ListMade: ("spec",),
    ListReplaced: ("count",),
    WebhookSet: ("kinds", "only", "paused"),
    WebhookRemoved: (),
    PersonErased: ("person", "payments", "events", "alerts", "list_entries"),
}


def audit_item(recorded: RecordedChange) -> AuditItem:
    """What the log shows of a change."""
    change = recorded.change
    return AuditItem(
        sequence=recorded.sequence,
        at=recorded.at,
        by=recorded.by,
        action=str(change.__struct_config__.tag),
        subject=subject_of(change),
        detail=_detail(change),
        request=recorded.request,
    )


def accessed_item(sequence: int, at: int, access: DataAccess) -> AuditItem:
    """What the log shows of requests for what tells of persons, or of one value; `at` in µs."""
    if access.payment is not None:
        shown = f"payment {access.payment}", {"field": access.field}
        return AuditItem(sequence, at, access.by, "personal_data_revealed", *shown)
    detail = {
        "since": show_instant(access.since),
        "requests": access.requests,
        "paths": list(access.paths),
    }
    return AuditItem(sequence, at, access.by, "personal_data_read", "payments", detail)


def _detail(change: Change | EntriesWanted) -> dict[str, Any]:
    if isinstance(change, SettingsChanged):
        settings = show_settings(change.settings)
        return {name: settings[name] for name in change.changed} | _set_members(change, "proposal")
    if isinstance(change, KeyCreated):
        end = change.expires_at
        return {
            "scopes": list(change.scopes),
            "name": change.name,
            "expires_at": None if end is None else show_instant(end),
            "owner": change.owner,
        }
    if isinstance(change, SessionStarted):
        return {"ends_at": show_instant(change.ends_at)} | _set_members(change, "parent")
    if isinstance(change, Activated):
        return _describe_activation(change)
    if isinstance(change, Deactivated):
        return _set_members(change, "ended", "reason", "proposal")
    if isinstance(change, Proposed):
        return {"note": change.note, "change": _detail(change.change), "base": change.base}
    if isinstance(change, EntriesWanted):
        return {"action": change.action, "count": change.count}
    if isinstance(change, EntriesChanged):
        until = {} if change.until is None else {"until": show_instant(change.until)}
        shown = {"action": change.action, "count": change.count, "values": change.values}
        return shown | until | _set_members(change, "ended", "alone", "reason", "proposal")
    detail = {
        "version" if name == "number" else name: msgspec.to_builtins(getattr(change, name))
        for name in _DETAILS[type(change)]
    }
    return detail | (_set_members(change, "proposal") if isinstance(change, RolloutSet) else {})


def _describe_activation(change: Activated) -> dict[str, Any]:
    detail: dict[str, Any] = {"version": change.number}
    if change.applies_from is not None:
        detail["applies_from"] = show_instant(change.applies_from)
    if change.until is not None:
        detail["until"] = show_instant(change.until)
    detail |= _set_members(change, "untested", "ended", "alone", "reason", "proposal")
    return detail


def _set_members(change: Change, *names: str) -> dict[str, Any]:
    """Those of its members that say something."""
    return {name: getattr(change, name) for name in names if getattr(change, name)}


def subject_of(change: Change | EntriesWanted) -> str:
    """What the change is of, as the log names it."""
    match change:
        case AccountCreated():
            return f"account {change.name}"
        case SettingsChanged() | AccountSuspended() | AccountResumed() | AccountDeleted():
            return "account"
        case KeyCreated() | KeyRevoked():
            return f"key {change.id}"
        case UserSet() | UserRemoved() | UserLinkMade():
            return f"user {change.name}"
        case SessionStarted() | SessionEnded():
            return f"session of {change.owner}"
        case ListMade():
            return f"list {change.name}"
        case EntriesChanged() | EntriesWanted() | ListReplaced():
            return f"list {change.list}"
        case WebhookSet() | WebhookRemoved():
            return f"webhook {change.url}"
        case PersonErased():
            return "person"
        case Proposed():
            return f"proposal {change.number}: {subject_of(change.change)}"
        case SearchSaved() | SearchDropped():
            return f"search {change.name}"
        case AlertMarked():
            return "alert"
        case ProposalRefused():
            return f"proposal {change.number}"
        case ScorecardShipped():
            return f"scorecard {change.name}"
        case _:
            return f"{NOUNS[change.kind]} {change.name}"
