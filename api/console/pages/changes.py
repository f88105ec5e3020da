"""Who changed what: the audit, newest first, and as a file."""

from __future__ import annotations

import json
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import csv_file, html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import instant, next_page, row, table
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, joined

PAGES_IN_FILE = 50


@get("/console/changes")
async def changes(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = await here.client.get("/v1/audit", {"cursor": here.query.get("cursor"), "limit": "50"})
    titles = ("at", "by", "what", "subject", "detail")
    content = joined(
        element(
            "header",
            element("h1", words("frame.changes")),
            element("a", words("payments.csv"), href="/console/changes/export.csv"),
            class_="tools",
        ),
        table(
            [words(f"changes.{title}") for title in titles],
            [_row(here, each) for each in found["audit"]],
            words("frame.changes"),
            class_="rows",
        ),
        next_page(here, found["cursor"], words("payments.older")),
    )
    return html(page(here, words("frame.changes"), content))


@get("/console/changes/export.csv")
async def export_changes(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    rows: list[tuple[str, ...]] = []
    cursor: str | None = None
    for _ in range(PAGES_IN_FILE):
        found = await here.client.get("/v1/audit", {"limit": "200", "cursor": cursor})
        for each in found["audit"]:
            detail = json.dumps(each["detail"], default=str)
            rows.append((each["at"], each["by"], each["action"], each["subject"], detail))
        cursor = found["cursor"]
        if cursor is None:
            break
    return csv_file("changes", ("at", "by", "action", "subject", "detail"), rows)


def _row(here: Visit, change: JsonObject) -> Html:
    detail = " · ".join(
        f"{name} {json.dumps(value, default=str)}" for name, value in change["detail"].items()
    )
    return row(
        instant(here, change["at"]),
        change["by"],
        change["action"].replace("_", " "),
        change["subject"],
        element("span", detail, class_="detail"),
    )
