"""Who changed what, when: the audit log over HTTP."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.queries import read_limit, read_place, read_since, show_place
from tollkeeper.api.http.views import audit_view
from tollkeeper.engine.explain.records import audit_page
from tollkeeper.engine.runtime import Engine


def audit_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The route of `/audit`."""

    @get("/v1/audit", operation_id="read_audit")
    async def read(
        request: AnyRequest,
        since: FromQuery[str | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[str | None] = None,
    ) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        page = await audit_page(
            engine.journal,
            key.account,
            since=read_since(since),
            cursor=read_place("cursor", cursor),
            limit=read_limit(limit),
        )
        return {
            "audit": [audit_view(item) for item in page.items],
            "cursor": show_place(page.cursor),
        }

    return [read]
