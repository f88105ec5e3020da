"""`/v1/alerts`: what monitors raised, newest first."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import Cursor, Limit, NextCursor
from tollkeeper.api.http.queries import read_limit, read_place, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import EVENTS
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import show_alert
from tollkeeper.engine.programs.json_values import JsonValue


class AlertView(Struct, frozen=True):
    """A monitor's condition went from not met to met for one key; `values` are what it read."""

    id: str
    type: str
    monitor: str
    title: str | None
    key: list[JsonValue]
    at: InstantText
    values: dict[str, JsonValue]


class AlertPage(Struct, frozen=True):
    alerts: list[AlertView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/alerts",
    "list_alerts",
    tag=EVENTS,
    summary="List alerts, newest first",
    doc="What monitors raised; the same that webhooks send.",
    scope="payments:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_alerts(request: Request, cursor: Cursor = None, limit: Limit = None) -> AlertPage:
    before, most = read_place("cursor", cursor), read_limit(limit)
    account = request.key.account
    found = request.engine.outbox.read(lambda c: list(outbox.alerts(c, account, before, most)))
    return AlertPage(
        [msgspec.convert(show_alert(alert), AlertView) for alert in found],
        show_place(found[-1].sequence if len(found) >= most else None),
    )


ROUTES = (list_alerts,)
