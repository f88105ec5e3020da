"""Requests that arrive by ASGI: find the route, check the method, call the handler, answer errors.

The payment routes call their handlers directly, without the framework (`bypass_framework`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias, cast

from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from tollkeeper.api.http.authentication import await_turn, let_in
from tollkeeper.api.http.errors import (
    JSON,
    answer,
    method_not_allowed,
    nothing_at_root,
    unknown_path,
)
from tollkeeper.api.http.logs import request_log
from tollkeeper.api.http.request import (
    DirectRequest,
    Service,
    begin_request,
    check_head,
    head_of,
    note_answer,
    problem_of,
    set_state,
    shared_headers,
    state_of,
)
from tollkeeper.engine.make_change import asked_by

NOWHERE = "none"
"""Stands for an unknown route in logs and metrics, since the path may contain anything."""


def observe_requests(
    app: ASGIApp,
    direct: Mapping[str, ASGIApp],
    find: Find,
    service: Service,
) -> ASGIApp:
    """Wrap the application: the one error body for all exceptions, and log lines.

    The routes in `direct` have applications of their own that bypass the framework, whose routing
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
        route = find(path)
        described = NOWHERE if route is None else route.path
        sent = [*scope["headers"]]
        version, query = scope["http_version"], scope["query_string"]
        head = head_of(scope["method"], path, query, version, described, sent)
        state = begin_request(service, head)
        asked_by.set(state.request_id.decode())
        set_state(scope, state)
        status = 0
        if scope["method"] == "HEAD":
            send = _drop_body(send)

        async def send_answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *shared_headers(state)]
            await send(message)

        try:
            check_head(state.head)
            await _dispatch(direct.get(described, app), route, scope, receive, send_answer)
        except Exception as error:
            problem = problem_of(error, state, log)
            if status == 0:
                await answer(send_answer, problem)
        finally:
            client = scope.get("client")
            note_answer(state, int(status), started, client[0] if client else None, log)

    return handle


def _dispatch(
    app: ASGIApp, route: Route | None, scope: HTTPScope, receive: Receive, send: Send
) -> Awaitable[None]:
    """Return the coroutine that answers the request. Raises `Problem` 404 and 405."""
    method = scope["method"]
    if route is None:
        if scope["path"] == "/":
            raise nothing_at_root(has_console=state_of(scope).service.settings.console == "on")
        raise unknown_path()
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


def _drop_body(send: Send) -> Send:
    async def head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message["body"] = b""
        await send(message)

    return head


@dataclass(frozen=True, slots=True)
class Route:
    """A path as documented, its methods, and the value of the header `Allow`."""

    path: str
    methods: frozenset[str]
    allow: str


Find: TypeAlias = Callable[[str], Route | None]

_ANY = "{}"
"""Stands for a parameter in the tree; an unescaped brace is never sent."""
_END = ""
"""The key in the tree of the route that ends there; path segments are never empty."""


def routes_of(operations: Iterable[tuple[str, str]]) -> Find:
    """Return the function that finds the route of a raw path; operations are (path, method)."""
    methods: dict[str, set[str]] = {}
    for path, method in operations:
        methods.setdefault(path, {"OPTIONS"}).add(method.upper())
    routes = [_route(path, allowed) for path, allowed in methods.items()]
    plain = {route.path: route for route in routes if "{" not in route.path}
    tree: dict[str, Any] = {}
    for route in routes:
        node = tree
        for part in route.path.split("/")[1:]:
            node = node.setdefault(_ANY if part.startswith("{") else part, {})
        node[_END] = route

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
        child = node.get(part) or node.get(_ANY)
        if child is None:
            return None
        node = child
    return node.get(_END)


def _route(path: str, methods: set[str]) -> Route:
    """Every path with `GET` also has `HEAD`."""
    if "GET" in methods:
        methods = methods | {"HEAD"}
    return Route(path, frozenset(methods), ", ".join(sorted(methods)))


_ID_PART = 3
"""The position of a payment's id among the path's segments."""


def bypass_framework(routes: Iterable[HTTPRouteHandler], app: ASGIApp) -> dict[str, ASGIApp]:
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
        request = DirectRequest(state_of(scope), receive)
        handling = handlers.get((request.known.head.route, scope["method"]))
        if handling is None:
            await app(scope, receive, send)
            return
        handler, answer_of = handling
        if wait := let_in(request.known, handler):
            await await_turn(request.known, wait)
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
