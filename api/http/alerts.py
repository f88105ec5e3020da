"""`/v1/alerts`: what monitors raised, newest first."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.queries import read_limit, read_place, show_place
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import show_alert
from tollkeeper.engine.runtime import Engine


def alert_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The route of `/alerts`."""

    @get("/v1/alerts", operation_id="list_alerts")
    async def list_(
        request: AnyRequest,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[str | None] = None,
    ) -> dict[str, Any]:
        key = require(engine.state, request.scope, "payments")
        before, most = read_place("cursor", cursor), read_limit(limit)
        found = engine.outbox.read(lambda c: list(outbox.alerts(c, key.account, before, most)))
        return {
            "alerts": list(map(show_alert, found)),
            "cursor": show_place(found[-1].sequence if len(found) >= most else None),
        }

    return [list_]
