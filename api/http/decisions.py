"""What was decided, newest first, over HTTP."""

from __future__ import annotations

from typing import Any, get_args

from litestar import get
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.queries import read_choice, read_limit, read_place, read_since, show_place
from tollkeeper.api.http.views import decided_view
from tollkeeper.engine.decision import Action
from tollkeeper.engine.explain.records import decided_page
from tollkeeper.engine.runtime import Engine


def decision_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The route of `/decisions`."""

    @get("/v1/decisions", operation_id="list_decisions")
    async def list_(
        request: AnyRequest,
        since: FromQuery[str | None] = None,
        action: FromQuery[str | None] = None,
        rule: FromQuery[str | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[str | None] = None,
    ) -> dict[str, Any]:
        key = require(engine.state, request.scope, "payments")
        page = await decided_page(
            engine.journal,
            key.account,
            since=read_since(since),
            action=read_choice("action", action, get_args(Action)),  # type: ignore[arg-type]
            rule=rule,
            cursor=read_place("cursor", cursor),
            limit=read_limit(limit),
        )
        decisions = [decided_view(item) for item in page.items]
        return {"decisions": decisions, "cursor": show_place(page.cursor)}

    return [list_]
