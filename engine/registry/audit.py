"""The audit log: the journal's changes and accesses read back, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.registry import changes as c
from tollkeeper.engine.registry.accesses import DataAccess
from tollkeeper.engine.registry.settings import show_settings
from tollkeeper.engine.registry.versions import NOUNS


class AuditItem(Struct, frozen=True):
    """`at` in µs; `by` a key's id or a command; `action` the name of the change; `request` the id
    of the HTTP request that caused it.
    """

    sequence: int
    at: int
    by: str
    action: str
    subject: str
    detail: dict[str, Any]
    request: str | None = None


# The fields that the log shows of a change, always or when they are set: a new field is hidden until
# it is added here.
_DETAILS: Mapping[type[Struct], tuple[str, ...]] = {
    c.KeyCreated: ("scopes", "name", "expires_at", "owner"),
    c.UserSet: ("role", "merchants"),
    c.SessionStarted: ("ends_at",),
    c.VersionStored: ("number", "checksum", "language"),
    c.ScorecardShipped: ("checksum", "language"),
    c.Activated: ("number",),
    c.ShadowSet: ("number",),
    c.RolloutSet: ("number", "percent", "by"),
    c.ProposalRefused: ("reason",),
    c.AlertMarked: ("state", "note"),
    c.SearchSaved: ("query",),
    c.ListMade: ("spec",),
    c.EntriesWanted: ("action", "count"),
    c.EntriesChanged: ("action", "count", "values"),
    c.ListReplaced: ("count",),
    c.WebhookSet: ("kinds", "only", "paused"),
    c.ErasureAsked: ("person",),
    c.PersonErased: ("person", "payments", "events", "alerts", "list_entries"),
}
_DETAILS_WHEN_SET: Mapping[type[Struct], tuple[str, ...]] = {
    c.SettingsChanged: ("proposal",),
    c.SessionStarted: ("parent",),
    c.Activated: ("applies_from", "until", "untested", "ended", "alone", "reason", "proposal"),
    c.Deactivated: ("ended", "reason", "proposal"),
    c.RolloutSet: ("proposal",),
    c.EntriesChanged: ("until", "ended", "alone", "reason", "proposal"),
}
_INSTANTS = frozenset({"expires_at", "ends_at", "applies_from", "until"})


AUDIT_ACTIONS: Final = (
    *sorted(str(change.__struct_config__.tag) for change in get_args(c.Change)),
    *("personal_data_read", "personal_data_revealed", "verdict_given", "verdict_taken_back"),
)
"""What an item of the log may tell of: changes, by their names, then accesses and verdicts."""


def audit_item(recorded: c.RecordedChange) -> AuditItem:
    """A change as the log shows it."""
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
    """Reads of personal data as the log shows them; `at` in µs."""
    if access.payment is not None:
        shown = f"payment {access.payment}", {"field": access.field}
        return AuditItem(sequence, at, access.by, "personal_data_revealed", *shown)
    detail = {
        "since": show_instant(access.since),
        "requests": access.requests,
        "paths": list(access.paths),
    }
    return AuditItem(sequence, at, access.by, "personal_data_read", "payments", detail)


def _detail(change: c.Change | c.EntriesWanted) -> dict[str, Any]:
    if isinstance(change, c.Proposed):
        return {"note": change.note, "change": _detail(change.change), "base": change.base}
    detail: dict[str, Any] = {}
    if isinstance(change, c.SettingsChanged):
        settings = show_settings(change.settings)
        detail = {name: settings[name] for name in change.changed}
    cls = type(change)
    when_set = [name for name in _DETAILS_WHEN_SET.get(cls, ()) if getattr(change, name)]
    for name in (*_DETAILS.get(cls, ()), *when_set):
        value = msgspec.to_builtins(getattr(change, name))
        is_instant = name in _INSTANTS and value is not None
        detail["version" if name == "number" else name] = (
            show_instant(value) if is_instant else value
        )
    if isinstance(change, c.KeyCreated):
        detail["scopes"] = list(change.scopes)
    return detail


def subject_of(change: c.Change | c.EntriesWanted) -> str:
    """The name of what was changed, as the log shows it."""
    match change:
        case c.AccountCreated():
            return f"account {change.name}"
        case c.SettingsChanged() | c.AccountSuspended() | c.AccountResumed() | c.AccountDeleted():
            return "account"
        case c.KeyCreated() | c.KeyRevoked():
            return f"key {change.id}"
        case c.UserSet() | c.UserRemoved() | c.UserLinkMade():
            return f"user {change.name}"
        case c.SessionStarted() | c.SessionEnded():
            return f"session of {change.owner}"
        case c.ListMade():
            return f"list {change.name}"
        case c.EntriesChanged() | c.EntriesWanted() | c.ListReplaced():
            return f"list {change.list}"
        case c.WebhookSet() | c.WebhookRemoved():
            return f"webhook {change.url}"
        case c.ErasureAsked() | c.PersonErased():
            return "person"
        case c.Proposed():
            return f"proposal {change.number}: {subject_of(change.change)}"
        case c.SearchSaved() | c.SearchDropped():
            return f"search {change.name}"
        case c.AlertMarked():
            return "alert"
        case c.ProposalRefused():
            return f"proposal {change.number}"
        case c.ScorecardShipped():
            return f"scorecard {change.name}"
        case _:
            return f"{NOUNS[change.kind]} {change.name}"
