"""Scopes: what keys may do, and named bundles of scopes (docs/api.md, "Authentication").

No scope includes another: a shop's backend that only creates payments can't read any back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

NarrowScope: TypeAlias = Literal[
    "payments:write",
    "payments:read",
    "personal:read",
    "labels:write",
    "events:write",
    "rules:read",
    "rules:write",
    "rules:publish",
    "lists:read",
    "lists:write",
    "settings:read",
    "settings:write",
    "audit:read",
    "people:write",
    "users:read",
    "users:write",
]
Bundle: TypeAlias = Literal["payments", "rules", "admin"]
KeyScope: TypeAlias = Literal[Bundle, NarrowScope]

SCOPES: Final[Mapping[NarrowScope, str]] = {
    "payments:write": "create and update payments",
    "payments:read": "decisions, their stream, counts, figures, scores, labels and alerts",
    "personal:read": "payments with what was sent of a person, their explanations, the search",
    "labels:write": "say what became known of payments",
    "events:write": "submit events",
    "rules:read": "rules, scorecards, event types, definitions, and their metrics",
    "rules:write": "store versions, set shadows",
    "rules:publish": "make a version active, roll it out or back, unpublish it",
    "lists:read": "lists and their entries",
    "lists:write": "make lists, change their entries",
    "settings:read": "the account's settings and webhooks",
    "settings:write": "change the account's settings and webhooks",
    "audit:read": "the audit log",
    "people:write": "erase what is kept of a person",
    "users:read": "the people who may sign in, their roles, and the account's keys",
    "users:write": "let people in and out, give them roles and links, make and revoke keys",
}
"""Each scope and what it lets a key do."""

_PAYMENTS: Final[frozenset[NarrowScope]] = frozenset(
    ("payments:write", "payments:read", "personal:read", "labels:write", "events:write")
)
_RULES: Final[frozenset[NarrowScope]] = frozenset(
    ("rules:read", "rules:write", "rules:publish", "lists:read", "lists:write")
)
BUNDLES: Final[Mapping[Bundle, frozenset[NarrowScope]]] = {
    "payments": _PAYMENTS,
    "rules": _RULES,
    "admin": frozenset(SCOPES),
}
"""Each bundle and its scopes."""

KEY_SCOPES: Final[tuple[KeyScope, ...]] = get_args(KeyScope)
"""Everything that a key can be given: scopes and bundles."""


def granted_scopes(scopes: Iterable[KeyScope]) -> frozenset[NarrowScope]:
    """The scopes of a key, with its bundles resolved."""
    given: set[NarrowScope] = set()
    for scope in scopes:
        match scope:
            case "payments" | "rules" | "admin":
                given |= BUNDLES[scope]
            case _:
                given.add(scope)
    return frozenset(given)
