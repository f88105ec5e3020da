"""Authentication: `Authorization: Bearer <key>` (docs/api.md, "Authentication")."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope

from tollkeeper.api.http.errors import (
    Problem,
    forbidden,
    invalid,
    of_all_merchants,
    suspended,
    unauthorized,
)
from tollkeeper.api.http.request import Exchange, RequestState, state_of
from tollkeeper.engine.intake.field_rules import printable_name
from tollkeeper.engine.intake.violations import Violation, cap_violations
from tollkeeper.engine.registry.keys import find_valid_key, hash_key
from tollkeeper.engine.registry.scopes import NarrowScope
from tollkeeper.engine.registry.state import ApiKey, Configuration

ANY_SCOPE: Final = "any"
"""The scope of a route that accepts every valid key."""
RouteScope: TypeAlias = NarrowScope | Literal["any"] | None
"""The scope that a route requires; None if it needs no key."""
AUTHORIZATION: Final = b"authorization"
_SCHEME = b"bearer "
_MAX_KEY = 256


async def authorize(
    connection: ASGIConnection[Any, Any, Any, Any], route: BaseRouteHandler
) -> None:
    """The framework's guard of each route. Raises as `let_in`."""
    known = state_of(connection.scope)
    if wait := let_in(known, route):
        await await_turn(known, wait)


def let_in(known: RequestState, route: BaseRouteHandler) -> float:
    """Check the request's key, rate limits and query parameters; return how many seconds it must
    wait for its turn.

    Raises as `key_of_request`, `check_scope` and `Limiter.take`, and `Problem` 422 for unknown
    query parameters.
    """
    needed: RouteScope = route.opt["scope"]
    wait = 0.0
    if announced := route.opt["deprecated"]:
        known.answer_headers += announced
    if needed is not None:
        key = _key_for(known, route, needed)
        known.handler = route
        known.allowance = known.service.limiter.take(key, route.opt["demand"], monotonic())
        wait = known.allowance.wait
        if needed == "personal:read":
            engine = known.service.engine
            engine.accesses.note(key, known.head.path, engine.clock())
        if known.head.query:
            _check_query(known.head.query, route.opt["query"])
    return wait


def count_reports(request: Exchange, more: int) -> None:
    """Count the reports of a batch beyond the first, which was counted on arrival.

    Raises `Problem` 429 if other requests have used up the limit meanwhile.
    """
    known = request.known
    take = known.service.limiter.take
    # A refusal's headers describe the bucket themselves.
    known.allowance = None
    known.allowance = take(request.key, "report", monotonic(), more, at_hand=0)


async def await_turn(known: RequestState, wait: float) -> None:
    """Wait for `wait` seconds. Raises as `let_in` if the key is no longer valid then."""
    await asyncio.sleep(wait)
    check_key_again(known)


def check_key_again(known: RequestState) -> None:
    """Raise as `let_in` if a key was checked and is no longer valid."""
    if known.handler is not None:
        _key_for(known, known.handler, known.handler.opt["scope"])


def _key_for(
    known: RequestState, route: BaseRouteHandler, needed: NarrowScope | Literal["any"]
) -> ApiKey:
    key = key_of_request(known)
    if needed != ANY_SCOPE:
        check_scope(key, needed)
        if key.merchants and not route.opt["of_merchants"]:
            raise of_all_merchants()
    return key


def _check_query(query: bytes, parameters: Mapping[str, bool]) -> None:
    """Check the names in a query; `parameters` maps each allowed one to whether it may be repeated."""
    sent = Counter(name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    violations = [
        Violation(
            printable_name(name), "unknown_member", "this operation reads no parameter of this name"
        )
        for name in sent
        if name not in parameters
    ]
    violations += [
        Violation(name, "invalid_value", "this parameter is given once")
        for name, times in sent.items()
        if times > 1 and not parameters.get(name, True)
    ]
    if violations:
        raise invalid(cap_violations(violations))


def key_of_request(known: RequestState) -> ApiKey:
    """Return the request's key, and record its use.

    Raises `Problem` 401 without a valid key, 403 if its account is suspended.
    """
    head = known.head
    if head.key_hash is None:
        head.key_hash = hash_key(presented_key(known))
    engine = known.service.engine
    state, now = engine.state, engine.clock()
    key = find_valid_key(state, head.key_hash, now)
    if key is None:
        session = engine.sessions.find(state, presented_key(known), now)
        if session is None:
            raise unauthorized()
        _, key = session
    engine.key_uses[key.id] = now
    account = state.accounts[key.account]
    known.log["account"] = account.name
    known.log["key"] = key.id
    known.key = key
    if account.suspended_at is not None:
        raise suspended()
    return key


def presented_key(known: RequestState) -> str:
    """Return the key or session token that was sent. Raises `Problem` 401 without one."""
    secret = secret_in(known.head.headers.get(AUTHORIZATION))
    if secret is None:
        raise unauthorized()
    return secret


def secret_in(authorization: bytes | None) -> str | None:
    """Return the key or session token of an `Authorization` header, None if it has none."""
    if (
        authorization is None
        or authorization[: len(_SCHEME)].lower() != _SCHEME
        or len(authorization) > _MAX_KEY
    ):
        return None
    return authorization[len(_SCHEME) :].strip().decode("latin-1")


def authorization_in(scope: Scope) -> bytes | None:
    """Return the first `Authorization` header of a request without a state."""
    return next((value for name, value in scope["headers"] if name == AUTHORIZATION), None)


def is_known(state: Configuration, authorization: bytes | None, now: int) -> bool:
    """Whether the header has a key or a session token that is valid at `now` (µs), as far as this
    node knows. Counts as no use of it.
    """
    secret = secret_in(authorization)
    if secret is None:
        return False
    hash_ = hash_key(secret)
    session = state.sessions.get(hash_)
    return find_valid_key(state, hash_, now) is not None or (
        session is not None and now < session.ends_at
    )


def check_scope(key: ApiKey, scope: NarrowScope) -> None:
    """Raise `Problem` 403 if the key lacks `scope`."""
    if scope not in key.granted:
        raise forbidden(scope)


def may_still(request: Exchange, scope: NarrowScope) -> bool:
    """Whether the request's key or session is still valid, for long-running answers."""
    try:
        check_scope(key_of_request(request.known), scope)
    except Problem:
        return False
    return True
