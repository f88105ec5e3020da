"""Alerts: each with its values, and the payments behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    Row,
    card_table,
    instant,
    legible,
    mask_alert_key,
    next_page,
    payments_link,
    read_instant,
    row,
    separated,
    text_of,
)
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

LONE_ALERT = "rule.published"
"""An alert of this type reports a version that somebody published alone; it has no payments."""
AROUND = timedelta(hours=1)
"""The payments behind an alert are those of this span before it."""


@get("/console/alerts")
async def alerts(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    query = {"cursor": here.query.get("cursor"), "state": here.query.get("state"), "limit": "50"}
    found = await here.client.get("/v1/alerts", query)
    titles = ("at", "monitor", "key", "values", "state", "payments")
    content = join_html(
        element("h1", words("frame.alerts")),
        _states(here),
        card_table(
            [words(f"alerts.{title}") for title in titles],
            [_row(here, each) for each in found["alerts"]],
            words("frame.alerts"),
            class_="rows",
        )
        if found["alerts"]
        else element("p", words("alerts.none"), class_="empty"),
        next_page(here, found["cursor"], words("payments.older")),
    )
    return html(page(here, words("frame.alerts"), content))


def alert_address(alert: JsonObject) -> str:
    return f"/console/alerts/{segment(alert['id'])}"


def alert_title(alert: JsonObject) -> str:
    """Return an alert's title, in its monitor's words."""
    return str(alert["title"] or alert["monitor"])


def mark_text(here: Visit, mark: JsonObject) -> Html:
    """Show an alert's state, and who handles it."""
    state = mark["state"]
    badge = element("span", here.words(f"alerts.{state}"), class_=f"state {state}")
    return badge if mark["by"] is None else join_html(badge, f" {mark['by']}")


def _states(here: Visit) -> Html:
    chosen = here.query.get("state")
    links = [
        element(
            "a",
            here.words(f"alerts.{state or 'every'}"),
            href=here.address(state=state, cursor=None),
            aria_current="true" if state == chosen else None,
        )
        for state in (None, "open", "acknowledged", "closed")
    ]
    return element("p", *(part for link in links for part in (link, " ")), class_="choices")


def _row(here: Visit, alert: JsonObject) -> Row:
    at = read_instant(alert["at"])
    query = f"since:{text_of(at - AROUND)} until:{text_of(at)}"
    values = separated(
        " · ",
        (
            join_html(name, " ", legible(here, str(value)))
            for name, value in alert["values"].items()
        ),
    )
    return row(
        instant(here, alert["at"]),
        element(
            "a",
            alert_title(alert),
            element("small", f"{alert['type']} · {alert['monitor']}"),
            href=alert_address(alert),
            class_="name",
        ),
        mask_alert_key(alert),
        values,
        mark_text(here, alert["mark"]),
        Html("")
        if alert["type"] == LONE_ALERT
        else payments_link(here, here.words("alerts.behind"), query),
    )
