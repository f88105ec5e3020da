"""A month in figures that can be printed and filed: each is a count of payments."""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import csv_file, html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    money_column,
    moneys,
    number,
    payments_link,
    percent,
    read_instant,
    row,
    table,
)
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import element, join_html

SPAN = "365d"
MATURE_DAYS = 45
"""Chargebacks of a payment have mostly come after this many days."""
TITLES = (
    "month",
    "payments",
    "money",
    "denied",
    "challenged",
    "passed",
    "fraud",
    "rate",
)


@get("/console/report")
async def report(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    months = await _months(here)
    rows = [
        row(*_linked(here, each, _row(here, each)), numeric=(1, 2, 3, 4, 5, 6, 7))
        for each in reversed(months)
    ]
    content = join_html(
        element(
            "header",
            element("h1", words("frame.report")),
            element("a", words("payments.csv"), href="/console/report.csv"),
            class_="tools",
        ),
        table(
            [words(f"report.{title}") for title in TITLES],
            rows,
            words("frame.report"),
            numeric=(1, 2, 3, 4, 5, 6, 7),
        ),
        element("p", words("report.note", days=MATURE_DAYS), class_="hints"),
    )
    return html(page(here, words("frame.report"), content))


@get("/console/report.csv")
async def report_file(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    return csv_file("report", TITLES, [_row(here, each) for each in await _months(here)])


async def _months(here: Visit) -> list[JsonObject]:
    query = {"since": SPAN, "every": "month", "money": "true"}
    found = (await here.client.get("/v1/figures", query))["figures"]
    return [each for each in found if each["tally"]["payments"]]


def _linked(here: Visit, month: JsonObject, cells: tuple[str, ...]) -> tuple[str, ...]:
    """The row with its counts leading to their payments."""
    span = f"since:{month['start']} until:{month['end']}"
    queries = {"payments": span, "fraud": f"label:fraud {span}"}
    return tuple(
        payments_link(here, cell, queries[title])
        if title in queries
        else money_column(moneys(month["money"]))
        if title == "money"
        else cell
        for title, cell in zip(TITLES, cells, strict=True)
    )


def _row(here: Visit, month: JsonObject) -> tuple[str, ...]:
    tally = month["tally"]
    payments, actions, labels = tally["payments"], tally["actions"], tally["labels"]
    end = read_instant(month["end"])
    ripe = (here.now - end).days >= MATURE_DAYS
    name = read_instant(month["start"]).astimezone(here.zone).strftime("%Y-%m")
    return (
        name if ripe else f"{name} {here.words('report.unripe')}",
        number(payments),
        " · ".join(moneys(month["money"])) or "–",
        percent(actions["deny"], payments),
        percent(actions["challenge"], payments),
        percent(tally["statuses"]["succeeded"], payments),
        number(labels["fraud"]),
        f"{100 * labels['fraud'] / payments:.2f}\u202f%",
    )
