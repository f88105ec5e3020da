"""Monthly figures to print and file, each a count of payments; what denials cost and save."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Any

from litestar import Request, get
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import csv_file, html, one_page
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.came_back import CAME_BACK, performances
from tollkeeper.api.console.parts import (
    card_table,
    choices,
    column,
    decimal,
    field,
    filter_member,
    moneys,
    number,
    payments_link,
    percent,
    read_instant,
    row,
    written,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

SPAN = "365d"
MATURE_DAYS = 45
"""Most chargebacks of a payment arrive within this many days."""
DECIDED = ("month", "payments", "money", "denied", "challenged", "challenge_passed", "passed")
KNOWN = ("month", "fraud", "rate", "fraud_money", "money_rate", "disputes", "dispute_rate")
FILED_COUNTS = (
    "payments",
    "denied",
    "challenged",
    "challenge_passed",
    "succeeded",
    "fraud",
    "disputes",
)
"""The counts of the file, which has amounts by currency besides."""
_EXACT = 2
"""Decimals of fraud shares in percent, as card schemes use."""
_TOP = 8
"""The number of conditions listed."""
_LATELY = "30d"
_MOST_PUBLISHED = "500"
"""So many publications are told apart."""
_ALERTS = "100"
"""The number of newest alerts from which response times are computed."""
DISPUTED = tuple(f"chargeback:{verdict}" for verdict in ("fraud", "legitimate", "unsure"))
"""All chargebacks, whatever verdict they carry."""


@dataclass(frozen=True, slots=True)
class WrongDenials:
    """Of `known` denials whose outcome a source knows, the `wrong` ones were of legitimate people."""

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
    months, merchants, denied, wrong, top, at_work = await asyncio.gather(
        *(_months(here), _merchants(here), _denied(here)),
        *(_wrong_denials(here), _top_conditions(here), _at_work(here)),
    )
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
        element(
            "p",
            words(
                "report.as_of",
                account=here.account,
                merchants=here.query.get("merchant") or words("report.all_merchants"),
                at=written(here, here.now, "%d %b %Y %H:%M"),
            ),
            class_="hints",
        ),
        element("h2", words("report.decided")),
        _months_table(here, months, DECIDED, words("report.decided")),
        element("h2", words("report.became_known")),
        _months_table(here, months, KNOWN, words("report.became_known")),
        element("p", words("report.note", days=MATURE_DAYS), class_="hints"),
        *_what_denials_do(here, denied, wrong),
        top,
        at_work,
    )
    return html(page(here, words("frame.report"), content))


@get("/console/report.csv")
async def report_file(request: Request[Any, Any, Any]) -> Stream:
    here = await visit(request)
    months = await _months(here)
    currencies = sorted({currency for each in months for currency in each["money"]})
    amounts = [f"{name}_{each}" for each in currencies for name in ("money", "fraud_money")]
    rows = one_page([_file_row(here, each, currencies) for each in months])
    return await csv_file("report", ("month", "final", *FILED_COUNTS, *amounts), rows)


def _file_row(here: Visit, month: JsonObject, currencies: list[str]) -> list[str]:
    """Return a month's counts and amounts as a spreadsheet reads them, in any language."""
    tally, challenged = month["tally"], month["challenged"]["tally"]
    counts = (
        tally["payments"],
        tally["actions"]["deny"],
        tally["actions"]["challenge"],
        challenged["statuses"]["succeeded"],
        tally["statuses"]["succeeded"],
        tally["labels"]["fraud"],
        month["disputed"]["tally"]["payments"],
    )
    amounts = (
        of.get(each, "0.00")
        for each in currencies
        for of in (month["money"], month["frauds"]["money"])
    )
    name = written(here, read_instant(month["start"]), "%Y-%m")
    return [name, "yes" if _is_ripe(here, month) else "no", *map(str, counts), *amounts]


def _is_ripe(here: Visit, month: JsonObject) -> bool:
    """Whether most chargebacks of the month's payments have arrived."""
    return (here.now - read_instant(month["end"])).days >= MATURE_DAYS


def _wanted(here: Visit) -> dict[str, str | None]:
    """Return the filter of the figures."""
    return {"since": SPAN, "merchant": here.query.get("merchant")}


async def _months(here: Visit) -> list[JsonObject]:
    """Return the figures of each month with payments, and those of its `disputed`, `challenged` and
    `frauds`.
    """
    query = {**_wanted(here), "every": "month"}
    parts: dict[str, dict[str, Any]] = {
        "all": {"money": "true"},
        "disputed": {"labelled": DISPUTED},
        "challenged": {"action": "challenge"},
        "frauds": {"label": "fraud", "money": "true"},
    }
    answers = await asyncio.gather(
        *(here.client.get("/v1/figures", {**query, **more}) for more in parts.values())
    )
    months = zip(*(answer["figures"] for answer in answers), strict=True)
    named = (dict(zip(parts, month, strict=True)) for month in months)
    return [{**each["all"], **each} for each in named if each["all"]["tally"]["payments"]]


def _months_table(
    here: Visit, months: list[JsonObject], titles: tuple[str, ...], caption: str
) -> Html:
    """Show some figures of each month, newest first, with counts linked to their payments."""
    numeric = tuple(range(1, len(titles)))
    rows = []
    for month in reversed(months):
        cells = _cells(here, month)
        linked = _links(here, month)
        shown = (
            payments_link(here, cells[title][0], linked[title])
            if title in linked
            else column(cells[title])
            for title in titles
        )
        rows.append(row(*shown, numeric=numeric))
    return card_table(
        [here.words(f"report.{title}") for title in titles], rows, caption, numeric=numeric
    )


async def _merchants(here: Visit) -> list[str]:
    """Return the merchants with the most payments."""
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
    """Return the figures of denied payments; None if there are none."""
    query = {**_wanted(here), "action": "deny", "money": "true"}
    (found,) = (await here.client.get("/v1/figures", query))["figures"]
    return found if found["tally"]["payments"] else None


async def _wrong_denials(here: Visit) -> list[WrongDenials]:
    """Return what sources other than labels know about wrong denials."""
    if here.merchants:
        return []
    asked = [_held_out(here)]
    if "merchant" not in here.query and here.may("rules:read"):
        asked.append(_came_back(here))
    return [*await asyncio.gather(*asked)]


def _reviewed(denied: JsonObject) -> WrongDenials:
    """Return what labels say of the denied payments."""
    labels = denied["tally"]["labels"]
    return WrongDenials("reviewed", labels["legitimate"] + labels["fraud"], labels["legitimate"])


async def _held_out(here: Visit) -> WrongDenials:
    held = await here.client.get("/v1/figures/holdout", _wanted(here))
    people, frauds = (held["false_positives"][name] for name in ("people", "frauds"))
    return WrongDenials("held_out", people + frauds, people)


async def _came_back(here: Visit) -> WrongDenials:
    """Return the denials of active rules, and after how many the same card or user paid within a
    week.
    """
    back = [each["came_back"] for each in await performances(here)]
    return WrongDenials(
        "came_back", sum(each["of"] for each in back), sum(each["succeeded"] for each in back)
    )


def _what_denials_do(
    here: Visit, denied: JsonObject | None, wrong: list[WrongDenials]
) -> tuple[Html, ...]:
    """Show how many denials are wrong, as a range over the sources, and what the other denials
    prevented. Sources that know of none are left out.
    """
    words = here.words
    head = element("h2", words("report.denials"))
    if denied is not None:
        wrong = [each for each in (_reviewed(denied), *wrong) if each.known]
    if denied is None or not wrong:
        return head, element("p", words("report.nobody_knows"), class_="empty")
    low, high = min(each.share for each in wrong), max(each.share for each in wrong)
    shown = [percent(here, share) for share in (low, high)]
    said = (
        words("report.range", low=shown[0], high=shown[1])
        if shown[0] != shown[1]
        else words("report.one_share", share=shown[0])
    )
    kept = [
        row(currency, *(_kept(here, amount, share) for share in (high, low)), numeric=(1, 2))
        for currency, amount in sorted(denied["money"].items())
    ]
    rows = [
        row(
            words(f"report.{each.source}"),
            _known_link(here, each.source, each.known, "known"),
            _known_link(here, each.source, each.wrong, "wrong"),
            percent(here, each.share),
            numeric=(1, 2, 3),
        )
        for each in wrong
    ]
    return (
        head,
        element("p", element("strong", said)),
        card_table(
            [words(f"report.{title}") for title in ("source", "known", "wrong", "share")],
            rows,
            words("report.denials"),
            numeric=(1, 2, 3),
        ),
        element("h3", words("report.prevented")),
        card_table(
            [words("by.currency"), words("report.least"), words("report.most")],
            kept,
            words("report.prevented"),
            numeric=(1, 2),
        ),
        element("p", words("report.prevented_note"), class_="hints"),
    )


def _known_link(here: Visit, source: str, count: int, which: str) -> Html:
    """A count of denials that a source knows of, or of those that were wrong, leading to them."""
    shown = number(here, count)
    if source == "came_back" and here.may("personal:read"):
        followed = "1" if which == "wrong" else None
        return element("a", shown, href=target(CAME_BACK, followed=followed))
    if source != "reviewed":
        return element("span", shown)
    merchant = here.query.get("merchant")
    named = "" if not merchant else f" {filter_member('merchant', merchant)}"
    labels = "label:legitimate" if which == "wrong" else "label:fraud label:legitimate"
    return payments_link(here, shown, f"action:deny {labels} since:{SPAN}{named}")


def _kept(here: Visit, denied: str, wrong: Decimal) -> str:
    """Return the amount of right denials, if this share of denials is wrong."""
    return decimal(here, Decimal(denied) * (1 - wrong), 2)


def _links(here: Visit, month: JsonObject) -> dict[str, str]:
    """Return the searches that a month's counts link to."""
    span = f"since:{month['start']} until:{month['end']}"
    if merchant := here.query.get("merchant"):
        span += f" {filter_member('merchant', merchant)}"
    disputed = " ".join(f"labelled:{each}" for each in DISPUTED)
    return {
        "payments": span,
        "fraud": f"label:fraud {span}",
        "disputes": f"{disputed} {span}",
    }


def _cells(here: Visit, month: JsonObject) -> dict[str, tuple[str, ...]]:
    """Return the cells of a month by their titles; amounts by currency, the largest first."""
    tally = month["tally"]
    payments, actions, labels = tally["payments"], tally["actions"], tally["labels"]
    name = written(here, read_instant(month["start"]), "%b %Y")
    challenged, disputes = (month[each]["tally"] for each in ("challenged", "disputed"))
    frauds = {name: Decimal(amount) for name, amount in month["frauds"]["money"].items()}
    return {
        "month": (name,) if _is_ripe(here, month) else (name, here.words("report.unripe")),
        "payments": (number(here, payments),),
        "money": tuple(moneys(here, month["money"])),
        "denied": (percent(here, actions["deny"], payments),),
        "challenged": (percent(here, actions["challenge"], payments),),
        "challenge_passed": (
            percent(here, challenged["statuses"]["succeeded"], challenged["payments"]),
        ),
        "passed": (percent(here, tally["statuses"]["succeeded"], payments),),
        "fraud": (number(here, labels["fraud"]),),
        "rate": (percent(here, labels["fraud"], payments, _EXACT),),
        "fraud_money": tuple(moneys(here, frauds)),
        "money_rate": tuple(
            f"{percent(here, frauds[currency], month['money'][currency], _EXACT)} {currency}"
            for currency in sorted(frauds, key=lambda name: -frauds[name])
        ),
        "disputes": (number(here, disputes["payments"]),),
        "dispute_rate": (
            percent(here, disputes["payments"], tally["statuses"]["succeeded"], _EXACT),
        ),
    }


async def _top_conditions(here: Visit) -> Html:
    """Show the conditions that decided the most payments recently."""
    query = {**_wanted(here), "since": _LATELY, "by": "condition"}
    figures = (await here.client.get("/v1/figures", query))["figures"]
    met = [each for each in figures if each["by"] != "none" and each["tally"]["payments"]]
    if not met:
        return Html("")
    words = here.words
    rows = []
    for each in sorted(met, key=lambda each: -int(each["tally"]["payments"]))[:_TOP]:
        tally = each["tally"]
        span = f"condition:{each['by']} since:{each['start']} until:{each['end']}"
        if merchant := here.query.get("merchant"):
            span += f" {filter_member('merchant', merchant)}"
        rows.append(
            row(
                element("code", each["by"]),
                payments_link(here, number(here, tally["payments"]), span),
                percent(here, tally["actions"]["deny"], tally["payments"]),
                payments_link(here, number(here, tally["labels"]["fraud"]), f"{span} label:fraud"),
                payments_link(
                    here, number(here, tally["labels"]["legitimate"]), f"{span} label:legitimate"
                ),
                numeric=(1, 2, 3, 4),
            )
        )
    titles = (
        words("now.condition"),
        words("report.payments"),
        words("report.denied"),
        words("label.fraud"),
        words("label.legitimate"),
    )
    shown = card_table(titles, rows, words("report.top"), numeric=(1, 2, 3, 4))
    return element("section", element("h2", words("report.top")), shown)


async def _at_work(here: Visit) -> Html:
    """How soon people looked after the newest alerts, what was published, and what was approved."""
    if "merchant" in here.query:
        return Html("")
    said = [*await _alerts_seen(here), *await _published(here), *await _decided_proposals(here)]
    if not said:
        return Html("")
    items = (element("li", each) for each in said)
    return element(
        "section",
        element("h2", here.words("report.at_work")),
        element("ul", *items, class_="plain"),
    )


async def _alerts_seen(here: Visit) -> list[str]:
    words = here.words
    alerts = (await here.client.get("/v1/alerts", {"since": _LATELY, "limit": _ALERTS}))["alerts"]
    if not alerts:
        return []
    waits = sorted(
        read_instant(each["mark"]["at"]) - read_instant(each["at"])
        for each in alerts
        if each["mark"]["at"] is not None
    )
    said = words("report.alerts", count=number(here, len(alerts)), seen=number(here, len(waits)))
    if waits:
        minutes = ceil(waits[len(waits) // 2].total_seconds() / 60)
        said += " " + words("report.alerts_soon", minutes=number(here, minutes))
    return [said]


async def _published(here: Visit) -> list[str]:
    """How many versions were made live, for those who read the log."""
    if here.merchants or not here.may("audit:read"):
        return []
    wanted = {"action": "activated", "since": _LATELY}
    found = await here.client.get("/v1/audit", {**wanted, "limit": _MOST_PUBLISHED})
    count = number(here, len(found["audit"])) + ("" if found["cursor"] is None else "+")
    said = here.words("report.published")
    return [join_html(said, " ", element("a", count, href=target("/console/changes", **wanted)))]


async def _decided_proposals(here: Visit) -> list[str]:
    """What became of the proposals that were decided; nothing where there is none."""
    if here.merchants or not here.may("rules:read"):
        return []
    since = here.now - timedelta(days=30)
    proposals = (await here.client.get("/v1/proposals"))["proposals"]
    states = Counter(
        each["state"]
        for each in proposals
        if each["decided_at"] is not None and read_instant(each["decided_at"]) >= since
    )
    if not states:
        return []
    counts = {each: number(here, states[each]) for each in ("approved", "refused", "alone")}
    said = here.words("report.proposals", **counts)
    return [element("a", said, href="/console/changes")]
