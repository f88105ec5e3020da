"""Months in figures that can be printed and filed: each is a count of payments; what denials cost
and save."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import csv_file, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    choices,
    field,
    money,
    money_column,
    moneys,
    number,
    payments_link,
    percent,
    read_instant,
    row,
    table,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

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
    "disputes",
    "dispute_rate",
)
_NUMERIC = tuple(range(1, len(TITLES)))
DISPUTED = tuple(f"chargeback:{verdict}" for verdict in ("fraud", "legitimate", "unsure"))
"""Every chargeback, whatever it says the payment was."""


@dataclass(frozen=True, slots=True)
class WrongDenials:
    """Of `known` denials a source knows what they were; `wrong` of them were of people."""

    source: str
    known: int
    wrong: int

    @property
    def share(self) -> Decimal:
        return Decimal(self.wrong) / self.known


@get("/console/report")
async def report(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    months, merchants, denied = await asyncio.gather(_months(here), _merchants(here), _denied(here))
    rows = [
        row(*_linked(here, each, _row(here, each)), numeric=_NUMERIC) for each in reversed(months)
    ]
    content = join_html(
        element(
            "header",
            element("h1", words("frame.report")),
            _choose_merchant(here, merchants),
            element(
                "a",
                words("payments.csv"),
                href=target("/console/report.csv", merchant=here.query.get("merchant")),
            ),
            class_="tools",
        ),
        table(
            [words(f"report.{title}") for title in TITLES],
            rows,
            words("frame.report"),
            numeric=_NUMERIC,
        ),
        element("p", words("report.note", days=MATURE_DAYS), class_="hints"),
        *_what_denials_do(here, denied, await _wrong_denials(here, denied)),
    )
    return html(page(here, words("frame.report"), content))


@get("/console/report.csv")
async def report_file(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    return csv_file("report", TITLES, [_row(here, each) for each in await _months(here)])


def _wanted(here: Visit) -> dict[str, str | None]:
    """Of whose payments the figures are."""
    return {"since": SPAN, "merchant": here.query.get("merchant")}


async def _months(here: Visit) -> list[JsonObject]:
    """The figures of each month that has payments, with `disputes`."""
    query = {**_wanted(here), "every": "month"}
    found, disputed = await asyncio.gather(
        here.client.get("/v1/figures", {**query, "money": "true"}),
        here.client.get("/v1/figures", {**query, "labelled": DISPUTED}),
    )
    return [
        {**each, "disputes": of["tally"]["payments"]}
        for each, of in zip(found["figures"], disputed["figures"], strict=True)
        if each["tally"]["payments"]
    ]


async def _merchants(here: Visit) -> list[str]:
    """Those with the most payments."""
    found = await here.client.get("/v1/figures", {"since": SPAN, "by": "merchant"})
    return sorted(each["by"] for each in found["figures"])


def _choose_merchant(here: Visit, merchants: list[str]) -> Html:
    chosen = here.query.get("merchant")
    options = [("", here.words("report.every_merchant")), *((each, each) for each in merchants)]
    return element(
        "form",
        field(here.words("by.merchant"), choices("merchant", options, chosen)),
        element("button", here.words("report.choose"), class_="quiet"),
        action="/console/report",
        class_="line",
    )


async def _denied(here: Visit) -> JsonObject | None:
    """The figures of denied payments, None where there is none."""
    query = {**_wanted(here), "action": "deny", "money": "true"}
    (found,) = (await here.client.get("/v1/figures", query))["figures"]
    return found if found["tally"]["payments"] else None


async def _wrong_denials(here: Visit, denied: JsonObject | None) -> list[WrongDenials]:
    """What each source knows of how many denials are wrong; those that know nothing are left out."""
    if denied is None:
        return []
    labels = denied["tally"]["labels"]
    sure = labels["legitimate"] + labels["fraud"]
    known = [WrongDenials("reviewed", sure, labels["legitimate"])]
    if not here.merchants:
        held = await here.client.get("/v1/figures/holdout", _wanted(here))
        people, frauds = (held["false_positives"][name] for name in ("people", "frauds"))
        known.append(WrongDenials("held_out", people + frauds, people))
    if not here.merchants and "merchant" not in here.query and here.may("rules:read"):
        known.append(await _came_back(here))
    return [each for each in known if each.known]


async def _came_back(here: Visit) -> WrongDenials:
    """Denials of rules in force after which the same card or user paid within a week."""
    rules = (await here.client.get("/v1/rules"))["rules"]
    found = await asyncio.gather(
        *(
            here.client.get(f"/v1/rules/{segment(each['name'])}/performance")
            for each in rules
            if each["active"] is not None
        )
    )
    back = [each["came_back"] for answer in found for each in answer["conditions"]]
    return WrongDenials(
        "came_back", sum(each["of"] for each in back), sum(each["succeeded"] for each in back)
    )


def _what_denials_do(
    here: Visit, denied: JsonObject | None, wrong: list[WrongDenials]
) -> tuple[Html, ...]:
    """How many denials are wrong, as the range of what is known, and what the others kept away."""
    words = here.words
    head = element("h2", words("report.denials"))
    if denied is None or not wrong:
        return head, element("p", words("report.nobody_knows"), class_="empty")
    low, high = min(each.share for each in wrong), max(each.share for each in wrong)
    shown = [percent(share) for share in (low, high)]
    said = (
        words("report.range", low=shown[0], high=shown[1])
        if shown[0] != shown[1]
        else words("report.one_share", share=shown[0])
    )
    kept = [_amounts(currency, amount, low, high) for currency, amount in denied["money"].items()]
    rows = [
        row(
            words(f"report.{each.source}"),
            _known_link(here, each, each.known, "label:fraud label:legitimate"),
            _known_link(here, each, each.wrong, "label:legitimate"),
            percent(each.share),
            numeric=(1, 2, 3),
        )
        for each in wrong
    ]
    return (
        head,
        element("p", element("strong", said)),
        table(
            [words(f"report.{title}") for title in ("source", "known", "wrong", "share")],
            rows,
            words("report.denials"),
            numeric=(1, 2, 3),
        ),
        element("p", words("report.prevented"), " ", element("strong", " · ".join(kept))),
        element("p", words("report.prevented_note"), class_="hints"),
    )


def _known_link(here: Visit, of: WrongDenials, count: int, label: str) -> Html:
    """A count of what a source knows, leading to its payments where a search finds them."""
    if of.source != "reviewed":
        return element("span", number(count))
    merchant = here.query.get("merchant")
    named = "" if not merchant else f" merchant:{json.dumps(merchant, ensure_ascii=False)}"
    return payments_link(here, number(count), f"action:deny {label} since:{SPAN}{named}")


def _amounts(currency: str, denied: str, low: Decimal, high: Decimal) -> str:
    """What right denials amount to, from the least to the most."""
    least, most = (money(Decimal(denied) * (1 - share), currency) for share in (high, low))
    return least if least == most else f"{least} – {most}"


def _linked(here: Visit, month: JsonObject, cells: tuple[str, ...]) -> tuple[str, ...]:
    """The row with its counts leading to their payments."""
    span = f"since:{month['start']} until:{month['end']}"
    if merchant := here.query.get("merchant"):
        span += f" merchant:{json.dumps(merchant, ensure_ascii=False)}"
    disputed = " ".join(f"labelled:{each}" for each in DISPUTED)
    queries = {
        "payments": span,
        "fraud": f"label:fraud {span}",
        "disputes": f"{disputed} {span}",
    }
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
        _exact_percent(labels["fraud"], payments),
        number(month["disputes"]),
        _exact_percent(month["disputes"], tally["statuses"]["succeeded"]),
    )


def _exact_percent(part: int, whole: int) -> str:
    """A share to a hundredth of a percent, as card schemes count; a dash of nothing."""
    return f"{100 * part / whole:.2f}\u202f%" if whole else "–"
