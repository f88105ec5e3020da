"""What people may do: roles, each a set of scopes (docs/console.md, "People").

Duties are apart: who manages users publishes nothing, and who publishes manages no users.
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
"""Each role and its scopes, from the least to the most trusted with decisions, then those beside."""

OF_MERCHANTS: Final = _scopes("payments:read", "personal:read", "labels:write", "lists:read")
"""What a user who sees some merchants alone may have of a role: all else tells of others too. Of the
lists they read those that the account shows them.
"""

ROLE_NAMES: Final[tuple[Role, ...]] = get_args(Role)
