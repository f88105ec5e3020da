"""Roles: what users may do, each a set of scopes (docs/console.md, "People").

Duties are separated: no role both manages users and publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from tollkeeper.engine.registry.scopes import NarrowScope

Role: TypeAlias = Literal["viewer", "analyst", "lead", "auditor", "admin"]


def _scopes(*scopes: NarrowScope) -> frozenset[NarrowScope]:
    return frozenset(scopes)


_VIEWER: Final = _scopes("payments:read", "rules:read", "lists:read", "settings:read")
_ANALYST: Final = _VIEWER | _scopes("personal:read", "labels:write", "rules:write", "lists:write")
ROLES: Final[Mapping[Role, frozenset[NarrowScope]]] = {
    "viewer": _VIEWER,
    "analyst": _ANALYST,
    "lead": _ANALYST | _scopes("rules:publish", "settings:write", "audit:read"),
    "auditor": _VIEWER | _scopes("audit:read"),
    "admin": _VIEWER | _scopes("audit:read", "users:read", "users:write", "people:write"),
}
"""Each role and its scopes: first those that decide more and more, then the others."""

OF_MERCHANTS: Final = _scopes("payments:read", "personal:read", "labels:write", "lists:read")
"""The scopes that a user limited to some merchants may have; all others would show other merchants'
data. They may read the lists in `merchant_lists` of the settings.
"""

ROLE_NAMES: Final[tuple[Role, ...]] = get_args(Role)
