"""Who asks: `Authorization: Bearer <key>` (docs/api.md, "Authentication")."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope as RequestScope

from tollkeeper.api.http.bodies import header
from tollkeeper.api.http.errors import forbidden, invalid, unauthorized
from tollkeeper.engine.intake.field_rules import printable_name
from tollkeeper.engine.intake.violations import Violation, cap_violations
from tollkeeper.engine.registry.changes import KeyScope
from tollkeeper.engine.registry.keys import allows, authenticate
from tollkeeper.engine.registry.state import ApiKey, Configuration

_SCHEME = b"bearer "
_MAX_KEY = 256


def authorize(connection: ASGIConnection[Any, Any, Any, Any], route: BaseRouteHandler) -> None:
    """The framework's guard of each route. Raises as `authorize_scope`."""
    authorize_scope(connection.scope, route)


def authorize_scope(request: RequestScope, route: BaseRouteHandler) -> None:
    """Let a request in that has the key its route needs, and no parameter that nothing reads.

    Raises as `require`, and `Problem` 422.
    """
    needed: KeyScope | None = route.opt["scope"]
    if needed is not None:
        require(request["state"]["engine"].state, request, needed)
        if request["query_string"]:
            _check_query(request["query_string"], route.opt["query"])


def _check_query(query: bytes, known: frozenset[str]) -> None:
    sent = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    unknown = [name for name in sent if name not in known]
    if unknown:
        message = "this operation reads no parameter of this name"
        raise invalid(
            cap_violations(
                [Violation(printable_name(name), "unknown_member", message) for name in unknown]
            )
        )


def require(state: Configuration, request: RequestScope, scope: KeyScope) -> ApiKey:
    """The key of the request. Raises `Problem` 401 without a good one, 403 without `scope`."""
    value = header(request, b"authorization")
    if value is None or value[:7].lower() != _SCHEME or len(value) > _MAX_KEY:
        raise unauthorized()
    key = authenticate(state, value[7:].strip().decode("latin-1"))
    if key is None:
        raise unauthorized()
    request["state"]["log"].update(account=state.accounts[key.account].name, key=key.id)
    request["state"]["key"] = key
    if not allows(key, scope):
        raise forbidden(scope)
    return key
