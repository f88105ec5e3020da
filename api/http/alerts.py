"""`/v1/alerts`: what monitors raised, newest first."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import Cursor, Limit, NextCursor
from tollkeeper.api.http.queries import read_limit, read_place, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import EVENTS
from tollkeeper.engine.folder_key import FolderKey, Named, Spot
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Alert
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
    before, most = read_place(request, "cursor", cursor), read_limit(limit)
    account = request.key.account
    found = request.engine.outbox.read(lambda c: list(outbox.alerts(c, account, before, most)))
    return AlertPage(
        [alert_view(request.engine.folder_key, alert) for alert in found],
        show_place(request, found[-1].sequence if len(found) >= most else None),
    )


def alert_view(key: FolderKey, alert: Alert) -> AlertView:
    """An alert as the list and the webhooks show it."""
    transition = alert.transition
    return AlertView(
        alert_id(key, alert.account, Spot(alert.sequence, alert.number)),
        transition.type,
        transition.monitor,
        transition.title,
        list(transition.key),
        show_instant(transition.at),
        transition.values,
    )


def alert_id(key: FolderKey, account: int, spot: Spot) -> str:
    """The alert's id, which tells nothing of what else happened."""
    return key.name_of(Named.ALERT, account, spot)


ROUTES = (list_alerts,)
