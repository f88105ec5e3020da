"""Around every request: find its route, check its method, answer its errors, log one line.

The payment routes call their handlers directly, without the framework (`straight`).
"""

from __future__ import annotations

import re
from binascii import hexlify
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import getrandbits
from time import perf_counter
from typing import Any, Final, TypeAlias, cast

from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from tollkeeper.api.http.authentication import await_turn, let_in
from tollkeeper.api.http.errors import (
    JSON,
    Problem,
    answer,
    as_problem,
    internal_error,
    malformed_head,
    method_not_allowed,
    nothing_here,
    unauthorized,
)
from tollkeeper.api.http.logs import request_log
from tollkeeper.api.http.request import (
    Head,
    RequestState,
    Service,
    StraightRequest,
    set_state,
    state_of,
)
from tollkeeper.engine.make_change import asked_by

NOWHERE = "none"
"""Stands for an unknown route in logs and metrics, since the path may contain anything."""


def observe_requests(
    app: ASGIApp,
    straight: Mapping[str, ASGIApp],
    find: Find,
    service: Service,
) -> ASGIApp:
    """Wrap the application: the one error body for all exceptions, and log lines.

    The routes in `straight` have applications of their own that bypass the framework, whose routing
    adds a third to the time for reading a request and answering it (docs/performance.md).

    What a handler adds to the `log` of the request's state is logged, and counted in the service's
    metrics: account, payment id, action, rule, version.
    """
    log = request_log()

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        started = perf_counter()
        # An id may contain any character, so only the handlers decode it (docs/api.md,
        # "Validation").
        path = scope["path"] = scope["raw_path"].decode("latin-1")
        found = find(path)
        route = NOWHERE if found is None else found.path
        sent = [*scope["headers"]]
        version, query = scope["http_version"], scope["query_string"]
        state = begin(service, head_of(scope["method"], path, query, version, route, sent))
        asked_by.set(state.request_id.decode())
        set_state(scope, state)
        status = 0
        if scope["method"] == "HEAD":
            send = _without_body(send)

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *headers_beside(state)]
            await send(message)

        try:
            check_head(state.head)
            await _dispatch(straight.get(route, app), found, scope, receive, noting)
        except Exception as error:
            problem = problem_of(error, state, log)
            if status == 0:
                await answer(noting, problem)
        finally:
            client = scope.get("client")
            note(state, int(status), started, client[0] if client else None, log)

    return handle


def head_of(
    method: str,
    path: str,
    query: bytes,
    version: str,
    route: str,
    sent: Sequence[tuple[bytes, bytes]],
) -> Head:
    """Return the head with headers `sent`, whose names are in lower case; of a repeated header, the
    first counts.
    """
    names = tuple(name for name, _ in sent)
    return Head(method, path, query, version, route, names, dict(reversed(sent)))


def begin(service: Service, head: Head) -> RequestState:
    """Return the state of a request whose head has arrived."""
    return RequestState(service, head, [(REQUEST_ID, request_id(head.headers))], {})


def headers_beside(state: RequestState) -> list[tuple[bytes, bytes]]:
    """Return the headers that every answer of the request has."""
    if state.allowance is None:
        return state.answer_headers
    return [*state.answer_headers, *state.allowance.headers()]


def problem_of(error: Exception, state: RequestState, log: FilteringBoundLogger) -> Problem:
    """Return the answer to a request that failed with `error`; internal errors are logged."""
    problem = as_problem(error)
    if problem is None and _lost_its_account(state):
        problem = unauthorized()
    if problem is None:
        log.exception("failed", route=state.head.route, request_id=state.request_id.decode())
        problem = internal_error()
    state.log["reason"] = problem.violations[0].type
    return problem


def note(
    state: RequestState, status: int, started: float, peer: str | None, log: FilteringBoundLogger
) -> None:
    """Count and log a request that was answered."""
    seconds = perf_counter() - started
    head = state.head
    state.service.figures.count(head.route, status, seconds, state.log)
    log.info(
        "request",
        method=head.method,
        route=head.route,
        status=status,
        # Whole microseconds: to round to three digits, Python writes the number and reads it again.
        ms=round(seconds * 1_000_000) / 1000,
        request_id=state.request_id.decode(),
        peer=peer,
        **state.log,
    )


def _lost_its_account(state: RequestState) -> bool:
    """Whether the account was deleted during the request, which makes it fail anywhere."""
    return state.key is not None and state.key.account not in state.service.engine.state.accounts


def _dispatch(
    app: ASGIApp, route: Route | None, scope: HTTPScope, receive: Receive, send: Send
) -> Awaitable[None]:
    """Return the coroutine that answers the request. Raises `Problem` 404 and 405."""
    method = scope["method"]
    if route is None:
        raise nothing_here()
    if method not in route.methods:
        raise method_not_allowed(route.allow)
    if method == "OPTIONS":
        return _tell_methods(send, route)
    if method == "HEAD":
        as_get = cast("HTTPScope", {**scope, "method": "GET"})
        return app(as_get, receive, send)
    return app(scope, receive, send)


async def _tell_methods(send: Send, route: Route) -> None:
    headers = [(b"allow", route.allow.encode())]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _without_body(send: Send) -> Send:
    async def head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message["body"] = b""
        await send(message)

    return head


REQUEST_ID: Final = b"x-request-id"
_SANE = re.compile(rb"[\x21-\x7e]{1,128}")
_RANDOM_BYTES = 12
_ONCE = (b"authorization", b"host")


def request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the caller's id if it is 1 to 128 visible ASCII characters, else a random one."""
    sent = headers.get(REQUEST_ID)
    if sent is not None and _SANE.fullmatch(sent):
        return sent
    # It only names a request and protects nothing, so it needs no secure randomness.
    return hexlify(getrandbits(8 * _RANDOM_BYTES).to_bytes(_RANDOM_BYTES))


def check_head(head: Head) -> None:
    """Raise `Problem` 400 for a head that different HTTP parsers understand differently."""
    headers = head.headers
    if b"host" not in headers and head.version == "1.1":
        raise malformed_head("host", "a request of HTTP/1.1 names its host")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and coding.strip().lower() != b"chunked":
        message = "send the body as it is or `chunked`, in no other coding"
        raise malformed_head("transfer-encoding", message)
    if len(headers) == len(head.names):
        return
    for name in _ONCE:
        if head.names.count(name) > 1:
            raise malformed_head(name.decode(), "this header may be sent once")


@dataclass(frozen=True, slots=True)
class Route:
    """A path as documented, its methods, and the value of the header `Allow`."""

    path: str
    methods: frozenset[str]
    allow: str


Find: TypeAlias = Callable[[str], Route | None]

_ANY = "{}"
"""Stands for a parameter in the tree; an unescaped brace is never sent."""
_HERE = ""
"""The key in the tree of the route that ends there; path segments are never empty."""


def routes_of(operations: Iterable[tuple[str, str]]) -> Find:
    """Return the function that finds the route of a raw path; operations are (path, method)."""
    methods: dict[str, set[str]] = {}
    for path, method in operations:
        methods.setdefault(path, {"OPTIONS"}).add(method.upper())
    routes = [_route(path, found) for path, found in methods.items()]
    plain = {route.path: route for route in routes if "{" not in route.path}
    tree: dict[str, Any] = {}
    for route in routes:
        node = tree
        for part in route.path.split("/")[1:]:
            node = node.setdefault(_ANY if part.startswith("{") else part, {})
        node[_HERE] = route

    def find(path: str) -> Route | None:
        return plain.get(path) or _walk(tree, path)

    return find


def described_path(path: str) -> str:
    """Return the path as documented, without the types of its parameters."""
    return path.replace(":str}", "}")


def _walk(tree: dict[str, Any], path: str) -> Route | None:
    node = tree
    for part in path.split("/")[1:]:
        if not part:
            return None
        found = node.get(part) or node.get(_ANY)
        if found is None:
            return None
        node = found
    return node.get(_HERE)


def _route(path: str, methods: set[str]) -> Route:
    """Every path with `GET` also has `HEAD`."""
    if "GET" in methods:
        methods = methods | {"HEAD"}
    return Route(path, frozenset(methods), ", ".join(sorted(methods)))


_ID_PART = 3
"""The position of a payment's id among the path's segments."""


def straight(routes: Iterable[HTTPRouteHandler], app: ASGIApp) -> dict[str, ASGIApp]:
    """Return an application for each path of `routes`, whose handlers take a request and, if the
    path has one, the percent-encoded payment id, and return the JSON of their usual status. Other
    methods of these paths go to `app`.
    """
    handlers = {
        (described_path(path), method): (route, route.fn)
        for route in routes
        for path in route.paths
        for method in route.http_methods
    }

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == ScopeType.HTTP
        request = StraightRequest(state_of(scope), receive)
        found = handlers.get((request.known.head.route, scope["method"]))
        if found is None:
            await app(scope, receive, send)
            return
        handler, answer_of = found
        if wait := let_in(request.known, handler):
            await await_turn(request.known, handler, wait)
        ids = scope["path"].split("/")[_ID_PART : _ID_PART + 1]
        body: bytes = await answer_of(request, *ids)
        await _send(send, handler.status_code, body)

    return {path: run for path, _ in handlers}


async def _send(send: Send, status: int, body: bytes) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", JSON), (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
