"""What monitors raised: each with its values, and the payments behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    instant,
    next_page,
    payments_link,
    read_instant,
    row,
    table,
    text_of,
)
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, joined

AROUND = timedelta(hours=1)
"""The payments behind an alert arrived this long before it."""


@get("/console/alerts")
async def alerts(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = await here.client.get("/v1/alerts", {"cursor": here.query.get("cursor"), "limit": "50"})
    titles = ("at", "monitor", "key", "values", "payments")
    content = joined(
        element("h1", words("frame.alerts")),
        table(
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


def _row(here: Visit, alert: JsonObject) -> Html:
    at = read_instant(alert["at"])
    query = f"since:{text_of(at - AROUND)} until:{text_of(at)}"
    values = " · ".join(f"{name} {value}" for name, value in alert["values"].items())
    return row(
        instant(here, alert["at"]),
        joined(element("strong", alert["monitor"]), " ", alert["title"] or alert["type"]),
        ", ".join(map(str, alert["key"])),
        values,
        payments_link(here, here.words("alerts.behind"), query),
    )
