"""Around every request: its path is found, its method checked, its faults answered, one line logged."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, cast

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from tollkeeper.api.http.errors import (
    answer,
    as_problem,
    internal_error,
    method_not_allowed,
    nothing_here,
    unauthorized,
)
from tollkeeper.api.http.heads import REQUEST_ID, check_head, request_id
from tollkeeper.api.http.logs import request_log
from tollkeeper.api.http.request import RequestState, Service, set_state
from tollkeeper.api.http.routing import Find, Route

NOWHERE = "none"
"""Stands for the route of a path that is not there: the path itself may hold anything."""


def observed(
    app: ASGIApp,
    straight: Mapping[str, ASGIApp],
    find: Find,
    service: Service,
) -> ASGIApp:
    """The application with the one error body for all that is raised in it, and its log lines.

    The routes in `straight` have applications of their own, past the framework: its way to a route
    adds a third to what reading a request and answering it take (docs/performance.md).

    What a handler adds to the `log` of the request's state joins the line, and is counted in the
    service's figures: account, payment id, action, rule, version.
    """
    log = request_log()

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        started = perf_counter()
        # An id may hold any character: only its handler decodes it (docs/api.md, "Validation").
        path = scope["path"] = scope["raw_path"].decode("latin-1")
        found = find(path)
        route = NOWHERE if found is None else found.path
        # Of several headers of one name the first counts.
        headers = dict(reversed([*scope["headers"]]))
        fields: dict[str, Any] = {}
        more = [(REQUEST_ID, request_id(headers))]
        state = RequestState(service, route, headers, more, fields)
        set_state(scope, state)
        status = 0
        if scope["method"] == "HEAD":
            send = _without_body(send)

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        try:
            check_head(scope, headers)
            await _dispatch(straight.get(route, app), found, scope, receive, noting)
        except Exception as error:
            problem = as_problem(error)
            if problem is None and _lost_its_account(state):
                problem = unauthorized()
            if problem is None:
                log.exception("failed", route=route, request_id=more[0][1].decode())
                problem = internal_error()
            fields["reason"] = problem.violations[0].type
            if status == 0:
                await answer(noting, problem)
        finally:
            seconds = perf_counter() - started
            service.figures.count(route, int(status), seconds, fields)
            log.info(
                "request",
                method=scope["method"],
                route=route,
                status=int(status),
                ms=round(seconds * 1000, 3),
                request_id=more[0][1].decode(),
                peer=client[0] if (client := scope.get("client")) else None,
                **fields,
            )

    return handle


def _lost_its_account(state: RequestState) -> bool:
    """Whether the account was deleted under the request, which then fails wherever it looks for it."""
    return state.key is not None and state.key.account not in state.service.engine.state.accounts


async def _dispatch(
    app: ASGIApp, route: Route | None, scope: HTTPScope, receive: Receive, send: Send
) -> None:
    method = scope["method"]
    if route is None:
        raise nothing_here()
    if method not in route.methods:
        raise method_not_allowed(route.allow)
    if method == "OPTIONS":
        await _tell_methods(send, route)
    elif method == "HEAD":
        as_get = cast("HTTPScope", {**scope, "method": "GET"})
        await app(as_get, receive, send)
    else:
        await app(scope, receive, send)


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
