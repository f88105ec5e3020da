"""Review payments one by one, by keyboard."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import PAGE_HEADERS, go_to, html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.payment import SOURCE, judge
from tollkeeper.api.console.parts import (
    aged_instant,
    choices,
    control_if_allowed,
    field,
    instant,
    number,
    payment_table,
    payments_link,
    since_text,
    text_of,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_WAITING = "action:challenge action:deny label:none since:7d"
"""The search for payments that need a review: not simply allowed, and without a label."""
_SORTS = ("oldest", "newest")
"""What can be judged first, the usual choice first; besides these the dearest of one currency."""
_AT_ONCE = 20
"""The payments that are reserved for one person."""
_MOST = 100
"""Past this many, verdicts of an hour are no longer counted exactly."""


@get("/console/review")
async def review(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    taken = here.query.get("taken", "")
    # Those taken last, which may be fewer than are held.
    last = int(taken) if taken in map(str, range(_AT_ONCE)) else _AT_ONCE
    held = (await here.client.get("/v1/claims"))["claims"][-last:] if last else []
    yours = await _unjudged(here, [each["payment"] for each in held]) if held else []
    if not yours:
        none = element("p", words("review.none"), class_="empty")
        return await _page(here, none if taken == "0" else Html(""))
    end = min(each["ends_at"] for each in held)
    shown = join_html(
        element("p", words("review.yours"), " ", instant(here, end, "%H:%M")),
        element("p", words("review.keys"), class_="hints"),
        element("p", id="refused", class_="bad", role="alert"),
        await payment_table(
            here,
            yours,
            aged_instant,
            data_verdicts="1",
            data_refused=words("review.refused"),
            data_stands=words("review.stands"),
        ),
    )
    return await _page(here, shown)


async def _unjudged(here: Visit, ids: list[str]) -> list[JsonObject]:
    """Return those of the payments that nobody has judged, in this order."""
    found = (await here.client.get("/v1/payments", {"id": ids, "label": "none"}))["payments"]
    by_id = {each["id"]: each for each in found}
    return [by_id[id_] for id_ in ids if id_ in by_id]


@post("/console/review")
async def take(request: Request[Any, Any, Any]) -> Response[str]:
    """Reserve payments for this person's review."""
    here = await visit(request)
    order = (await read_form(request)).get("sort") or _SORTS[0]
    sort, _, currency = order.partition(":")
    wanted = f"{_WAITING} currency:{currency}" if currency else _WAITING
    query = {"q": wanted, "limit": str(_AT_ONCE), "sort": sort}
    found = await here.client.send("POST", "/v1/claims", query)
    return go_to(target("/console/review", sort=order, taken=str(len(found["payments"]))))


@post("/console/review/{id_:str}", status_code=204)
async def give_verdict(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[None]:
    """Set the label for a pressed key; empty removes it. The page shows it already."""
    here = await visit(request)
    await judge(here, id_, (await read_form(request))["label"])
    return Response(None, status_code=204, headers=PAGE_HEADERS)


async def _page(here: Visit, shown: Html) -> Response[str]:
    words = here.words
    ask = here.client.get
    hour = text_of(here.now - timedelta(hours=1))
    oldest, given, waiting = await asyncio.gather(
        ask("/v1/payments", {"q": _WAITING, "sort": "oldest", "limit": "1"}),
        ask("/v1/labels", {"since": hour, "source": SOURCE, "limit": str(_MOST)}),
        ask("/v1/figures", {"q": _WAITING, "by": "currency"}),
    )
    by_currency = waiting["figures"]  # each payment has one
    count = sum(each["tally"]["payments"] for each in by_currency)
    verdicts = len(given["labels"])
    choice = choices("sort", _orders(here, by_currency), here.query.get("sort"))
    button = element("button", words("review.take"), autofocus="")
    content = join_html(
        element("h1", words("frame.review")),
        element(
            "p",
            payments_link(here, number(here, count), _WAITING),
            " ",
            words("review.count", count=count),
            " ",
            *(
                words("review.oldest", since=since_text(here, each["at"])) + " "
                for each in oldest["payments"]
            ),
            words("review.given", count=f"{verdicts}+" if verdicts == _MOST else verdicts),
        ),
        control_if_allowed(
            here,
            "labels:write",
            element(
                "form",
                field(words("review.order"), choice),
                button,
                method="post",
                action="/console/review",
                class_="line",
            ),
        ),
        shown,
    )
    return html(page(here, words("frame.review"), content, scripts=("verdicts.js",)))


def _orders(here: Visit, waiting: list[JsonObject]) -> list[tuple[str, str]]:
    """Return the orders to choose from: by time, and by amount in each currency, the one in which most
    payments wait first.
    """
    most_first = sorted(waiting, key=lambda each: -int(each["tally"]["payments"]))
    return [
        *((each, here.words(f"review.{each}_first")) for each in _SORTS),
        *(
            (f"dearest:{each['by']}", here.words("review.dearest_first", currency=each["by"]))
            for each in most_first
            if each["tally"]["payments"]
        ),
    ]
