"""Who changed what, when: the audit log over HTTP."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery

from tollkeeper.api.authentication import require
from tollkeeper.api.bodies import AnyRequest
from tollkeeper.api.queries import read_limit, read_place, read_since, show_place
from tollkeeper.api.views import audit_view
from tollkeeper.engine.engine import Engine
from tollkeeper.engine.records import audit_page


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
