"""Who asks: `Authorization: Bearer <key>` (docs/api.md, "Authentication")."""

from __future__ import annotations

from litestar.types import Scope as RequestScope

from tollkeeper.api.http.bodies import header
from tollkeeper.api.http.errors import forbidden, unauthorized
from tollkeeper.engine.registry.changes import Scope
from tollkeeper.engine.registry.keys import allows, authenticate
from tollkeeper.engine.registry.state import Key, State

_SCHEME = b"bearer "
_MAX_KEY = 256


def require(state: State, request: RequestScope, scope: Scope) -> Key:
    """The key of the request. Raises `Problem` 401 without a good one, 403 without `scope`."""
    value = header(request, b"authorization")
    if value is None or value[:7].lower() != _SCHEME or len(value) > _MAX_KEY:
        raise unauthorized()
    key = authenticate(state, value[7:].strip().decode("latin-1"))
    if key is None:
        raise unauthorized()
    request["state"]["log"]["account"] = key.account
    if not allows(key, scope):
        raise forbidden(scope)
    return key
