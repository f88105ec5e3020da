"""The one way past the framework: the routes of payments, run as they are declared.

The framework's way to a route, its parameters and its response adds a third to what reading a
payment and answering it take (docs/performance.md, "A whole request").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from tollkeeper.api.http.authentication import authorize_scope
from tollkeeper.api.http.errors import JSON
from tollkeeper.api.http.request import StraightRequest
from tollkeeper.api.http.routing import plain

_NAME = 3
"""Which part of a path is a payment's id."""


def straight(routes: Iterable[HTTPRouteHandler], app: ASGIApp) -> dict[str, ASGIApp]:
    """What answers each path of `routes`, whose handlers take a request, the id of a payment when
    the path has one, percent-encoded, and give the JSON of their usual status. Other methods of
    these paths are for `app`."""
    handlers = {
        (plain(path), method): route
        for route in routes
        for path in route.paths
        for method in route.http_methods
    }

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        request = StraightRequest(cast("HTTPScope", scope), receive)
        handler = handlers.get((request.route, request.scope["method"]))
        if handler is None:
            await app(scope, receive, send)
            return
        authorize_scope(request.scope, handler)
        ids = scope["path"].split("/")[_NAME : _NAME + 1]
        body: bytes = await handler.fn(request, *ids)
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
