"""Who asks: `Authorization: Bearer <key>` (docs/api.md, "Authentication")."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope as RequestScope

from tollkeeper.api.http.bodies import header
from tollkeeper.api.http.errors import forbidden, unauthorized
from tollkeeper.engine.registry.changes import KeyScope
from tollkeeper.engine.registry.keys import allows, authenticate
from tollkeeper.engine.registry.state import Configuration, Key

_SCHEME = b"bearer "
_MAX_KEY = 256


def authorize(connection: ASGIConnection[Any, Any, Any, Any], route: BaseRouteHandler) -> None:
    """Let a request in that has the key its route needs. Raises as `require`."""
    needed: KeyScope | None = route.opt["scope"]
    if needed is not None:
        require(connection.scope["state"]["engine"].state, connection.scope, needed)


def require(state: Configuration, request: RequestScope, scope: KeyScope) -> Key:
    """The key of the request. Raises `Problem` 401 without a good one, 403 without `scope`."""
    value = header(request, b"authorization")
    if value is None or value[:7].lower() != _SCHEME or len(value) > _MAX_KEY:
        raise unauthorized()
    key = authenticate(state, value[7:].strip().decode("latin-1"))
    if key is None:
        raise unauthorized()
    request["state"]["log"]["account"] = key.account
    request["state"]["key"] = key
    if not allows(key, scope):
        raise forbidden(scope)
    return key
