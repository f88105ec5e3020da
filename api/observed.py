"""Around every request: its raw path is routed, its faults are answered, one line is logged."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tollkeeper.api.bodies import Disconnected
from tollkeeper.api.errors import Problem, answer, internal_error
from tollkeeper.api.logs import request_log


def observed(app: ASGIApp) -> ASGIApp:
    """The application with the one error body for all that is raised in it, and its log lines.

    What a handler leaves in `scope["state"]["log"]` joins the line: account, payment id, action,
    rule, version; no personal data and no key.
    """
    log = request_log()

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        started = perf_counter()
        # An id may hold any character: only its handler decodes it (API.md, "Validation").
        scope["path"] = scope["raw_path"].decode("latin-1")
        fields: dict[str, Any] = {}
        scope.setdefault("state", {})["log"] = fields
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, noting)
        except Disconnected:
            fields["disconnected"] = True
        except Problem as problem:
            await answer(noting, problem)
        except Exception:
            log.exception("failed", path=scope["path"][:256])
            if status == 0:
                await answer(noting, internal_error())
        finally:
            log.info(
                "request",
                method=scope["method"],
                status=int(status),
                ms=round((perf_counter() - started) * 1000, 3),
                **fields,
            )

    return handle
