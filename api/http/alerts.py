"""`/v1/alerts`: alerts raised by monitors, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, get_args

from msgspec import Struct, structs

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import (
    MOMENT,
    Cursor,
    Limit,
    NextCursor,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.queries import read_choice, read_limit, read_place, read_since, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import EVENTS
from tollkeeper.engine.folder_key import FolderKey, NameUse, Spot
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.make_change import change_account
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Alert
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.engine.registry.alert_marks import mark_alert, mark_of
from tollkeeper.engine.registry.changes import AlertState
from tollkeeper.engine.registry.errors import NotFound

AlertId = Annotated[
    str, path_parameter("The alert's id.", "9f1c6f0e2b7d4a1c8e5f3b6a7c9d0e1f", name="id")
]
_LOOKED_AT = 1000
"""The most alerts that are examined for one page of a filtered list."""
_STATES: tuple[AlertState, ...] = get_args(AlertState)
_STATE_SCHEMA = {"type": "string", "enum": [*_STATES]}


class AlertView(Struct, frozen=True):
    """A monitor's condition became true for one key; `values` are those that it read."""

    id: str
    type: str
    monitor: str
    title: str | None
    key: list[JsonValue]
    at: InstantText
    values: dict[str, JsonValue]


class AlertMarkView(Struct, frozen=True):
    """How an alert is handled; `by` and `at` are those of the last change, null before the first."""

    state: AlertState
    by: str | None
    at: InstantText | None
    note: str


class MarkedAlert(AlertView, frozen=True):
    """An alert, and how it is handled."""

    mark: AlertMarkView


class AlertAnswer(Struct, frozen=True):
    alert: MarkedAlert


class AlertChange(Struct, frozen=True, forbid_unknown_fields=True):
    state: AlertState
    note: str = ""


class AlertBody(Struct, frozen=True, forbid_unknown_fields=True):
    alert: AlertChange


class AlertPage(Struct, frozen=True):
    alerts: list[MarkedAlert]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/alerts",
    "list_alerts",
    tag=EVENTS,
    summary="List alerts, newest first",
    doc=(
        "The alerts that monitors raised, the same as webhooks send, and who handles them. "
        "A page of a filtered list may hold fewer alerts than requested and still have a "
        "`cursor`. A user who is limited to some merchants sees the alerts that concern one "
        "of these alone: those whose monitor, and all that it reads, is keyed by "
        "`merchant.id`."
    ),
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_alerts(
    request: Request,
    only: Annotated[
        str | None,
        query_parameter("Only alerts in this state.", _STATE_SCHEMA, "open", "state"),
    ] = None,
    since: Annotated[
        str | None,
        query_parameter(
            "Only alerts raised at this instant or later, or a span back such as `30d`.",
            MOMENT,
            "30d",
        ),
    ] = None,
    monitor: Annotated[
        str | None, query_parameter("Only alerts of this monitor.", example="card_testing")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> AlertPage:
    before, most = read_place(request, "cursor", cursor), read_limit(limit)
    chosen, account = read_choice("state", only, _STATES), request.account
    begin = read_since(request, since)

    def is_wanted(alert: Alert) -> bool:
        mark, raised = mark_of(account, alert.sequence, alert.number), alert.transition
        return (
            chosen in (None, mark.state)
            and raised.at >= begin
            and monitor in (None, raised.monitor)
            and _is_visible(request, alert)
        )

    narrowed = chosen or begin or monitor or request.key.merchants
    reach = _LOOKED_AT if narrowed else most
    found, last = await request.engine.outbox.read(
        lambda c: _read_page(
            outbox.alerts(c, account.number, before, reach), most, reach, is_wanted
        )
    )
    return AlertPage([_mark_alert(request, alert) for alert in found], show_place(request, last))


def _read_page(
    alerts: Iterable[Alert], most: int, reach: int, is_wanted: Callable[[Alert], bool]
) -> tuple[list[Alert], int | None]:
    """Return about `most` alerts that are wanted among the first `reach`, and the last alert that
    was examined; None if there are no more.
    """
    found: list[Alert] = []
    last, looked = None, 0
    for alert in alerts:
        if len(found) >= most and alert.sequence != last:
            return found, last
        last, looked = alert.sequence, looked + 1
        if is_wanted(alert):
            found.append(alert)
    return found, last if looked >= reach else None


@operation(
    "GET",
    "/v1/alerts/{id:str}",
    "read_alert",
    tag=EVENTS,
    summary="Read an alert",
    doc="An alert, and who handles it.",
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The alert.")},
    refusals=(404, 503),
)
async def read_alert(request: Request, id_: AlertId) -> AlertAnswer:
    return AlertAnswer(_mark_alert(request, await _find(request, id_)))


@operation(
    "PUT",
    "/v1/alerts/{id:str}",
    "mark_alert",
    tag=EVENTS,
    summary="Acknowledge an alert, close it, or open it again",
    doc="Tells others who handles it; the audit log records each change, with its note.",
    scope="labels:write",
    demand="change",
    of_merchants=True,
    sent=Body(
        AlertBody,
        {"closed": Example("it is over", {"alert": {"state": "closed", "note": "card testing"}})},
    ),
    answers={200: Answer("The alert as it is now.")},
    refusals=(404, 503),
)
async def put_mark(request: Request, id_: AlertId) -> AlertAnswer:
    alert = await _find(request, id_)
    sent = (await read_json(request, AlertBody)).alert
    await change_account(
        request.engine,
        request.key.account,
        request.key.id,
        lambda state: mark_alert(state, alert.sequence, alert.number, sent.state, sent.note),
    )
    return AlertAnswer(_mark_alert(request, alert))


async def _find(request: Request, id_: str) -> Alert:
    """Find an alert. Raises `NotFound`."""
    account = request.key.account
    spot = request.engine.folder_key.spot_of(NameUse.ALERT, account, id_)
    if spot is None:
        raise NotFound("alert", "there is no alert of this id")
    found = await request.engine.outbox.read(lambda c: outbox.alert(c, account, *spot))
    if found is None or not _is_visible(request, found):
        raise NotFound("alert", "there is no alert of this id")
    return found


def _is_visible(request: Request, alert: Alert) -> bool:
    """Whether the requester may see the alert: a user limited to some merchants sees only these
    merchants' alerts.
    """
    seen = request.key.merchants
    return not seen or alert.transition.merchant in seen


def _mark_alert(request: Request, alert: Alert) -> MarkedAlert:
    mark = mark_of(request.account, alert.sequence, alert.number)
    at = None if mark.at is None else show_instant(mark.at)
    return MarkedAlert(
        **structs.asdict(alert_view(request.engine.folder_key, alert)),
        mark=AlertMarkView(mark.state, mark.by, at, mark.note),
    )


def alert_view(key: FolderKey, alert: Alert) -> AlertView:
    """Return an alert as lists and webhooks show it."""
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
    """Return the alert's id, which reveals nothing about other alerts."""
    return key.name_of(NameUse.ALERT, account, spot)


ROUTES = (list_alerts, read_alert, put_mark)
