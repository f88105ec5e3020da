"""Who asks: `Authorization: Bearer <key>` (docs/api.md, "Authentication")."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

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
from tollkeeper.engine.registry.keys import find_good, hash_key
from tollkeeper.engine.registry.scopes import NarrowScope
from tollkeeper.engine.registry.state import ApiKey

ANY_SCOPE: Final = "any"
"""What a route needs that every good key may ask."""
RouteScope: TypeAlias = NarrowScope | Literal["any"] | None
"""What a route needs of the key; None where it takes none."""
_SCHEME = b"bearer "
_MAX_KEY = 256


async def authorize(
    connection: ASGIConnection[Any, Any, Any, Any], route: BaseRouteHandler
) -> None:
    """The framework's guard of each route. Raises as `let_in`."""
    known = state_of(connection.scope)
    if wait := let_in(known, route):
        await await_turn(known, route, wait)


def let_in(known: RequestState, route: BaseRouteHandler) -> float:
    """Let a request in that has the key its route needs, and no parameter that nothing reads: in how
    many seconds its turn comes.

    Raises as `key_of_request`, `check_scope` and `Limiter.take`, and `Problem` 422.
    """
    needed: RouteScope = route.opt["scope"]
    wait = 0.0
    if announced := route.opt["deprecated"]:
        known.answer_headers += announced
    if needed is not None:
        key = _key_for(known, route, needed)
        known.allowance = known.service.limiter.take(key, route.opt["demand"], monotonic())
        wait = known.allowance.wait
        if needed == "personal:read":
            engine = known.service.engine
            engine.accesses.note(key, known.head.path, engine.clock())
        if known.head.query:
            _check_query(known.head.query, route.opt["query"])
    return wait


def count_reports(request: Exchange, more: int) -> None:
    """Counts what a request holds beyond its first report, for which it was let in.

    Raises `Problem` 429 when others have since taken more than there was.
    """
    known = request.known
    take = known.service.limiter.take
    # A refusal tells of the bucket itself.
    known.allowance = None
    known.allowance = take(request.key, "report", monotonic(), more, at_hand=0)


async def await_turn(known: RequestState, route: BaseRouteHandler, wait: float) -> None:
    """Done in `wait` seconds. Raises as `let_in` for a key that is good no longer then."""
    await asyncio.sleep(wait)
    _key_for(known, route, route.opt["scope"])


def _key_for(
    known: RequestState, route: BaseRouteHandler, needed: NarrowScope | Literal["any"]
) -> ApiKey:
    key = key_of_request(known)
    if needed != ANY_SCOPE:
        check_scope(key, needed)
        if key.merchants and not route.opt["of_merchants"]:
            raise of_all_merchants()
    return key


def _check_query(query: bytes, known: Mapping[str, bool]) -> None:
    """`known` says of each parameter whether it may be given several times."""
    sent = Counter(name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    found = [
        Violation(
            printable_name(name), "unknown_member", "this operation reads no parameter of this name"
        )
        for name in sent
        if name not in known
    ]
    found += [
        Violation(name, "invalid_value", "this parameter is given once")
        for name, times in sent.items()
        if times > 1 and not known.get(name, True)
    ]
    if found:
        raise invalid(cap_violations(found))


def key_of_request(known: RequestState) -> ApiKey:
    """The key of the request, used now.

    Raises `Problem` 401 without a good one, 403 while its account is suspended.
    """
    head = known.head
    if head.key_hash is None:
        head.key_hash = hash_key(presented_key(known))
    engine = known.service.engine
    state, now = engine.state, engine.clock()
    key = find_good(state, head.key_hash, now)
    if key is None:
        found = engine.sessions.find(state, presented_key(known), now)
        if found is None:
            raise unauthorized()
        _, key = found
    engine.key_uses[key.id] = now
    account = state.accounts[key.account]
    known.log["account"] = account.name
    known.log["key"] = key.id
    known.key = key
    if account.suspended_at is not None:
        raise suspended()
    return key


def presented_key(known: RequestState) -> str:
    """The key or session that is sent. Raises `Problem` 401 where there is none."""
    value = known.head.headers.get(b"authorization")
    if value is None or value[:7].lower() != _SCHEME or len(value) > _MAX_KEY:
        raise unauthorized()
    return value[7:].strip().decode("latin-1")


def check_scope(key: ApiKey, scope: NarrowScope) -> None:
    """Raises `Problem` 403 for a key without `scope`."""
    if scope not in key.granted:
        raise forbidden(scope)


def may_still(request: Exchange, scope: NarrowScope) -> bool:
    """Whether what the request was sent with is still good, for who answers for long."""
    try:
        check_scope(key_of_request(request.known), scope)
    except Problem:
        return False
    return True
