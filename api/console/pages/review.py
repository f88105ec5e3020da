"""Review payments one by one, by keyboard."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import PAGE_HEADERS, html
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.payment import SOURCE, judge
from tollkeeper.api.console.parts import (
    control_if_allowed,
    instant,
    number,
    payment_table,
    payments_link,
    read_instant,
    text_of,
    written,
)
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

_WAITING = "action:challenge action:deny label:none since:7d"
"""The search for payments that need a review: not simply allowed, and without a label."""
_WAITING_BY_DAY = {
    "action": ("challenge", "deny"),
    "label": "none",
    "since": "7d",
    "every": "day",
}
_MOST = 100
"""Past this many, verdicts of an hour are no longer counted exactly."""


@get("/console/review")
async def review(request: Request[Any, Any, Any]) -> Response[str]:
    return await _page(await visit(request), Html(""))


@post("/console/review")
async def take(request: Request[Any, Any, Any]) -> Response[str]:
    """Reserve payments for this person's review."""
    here = await visit(request)
    words = here.words
    query = {"q": _WAITING, "limit": "20"}
    found = await here.client.send("POST", "/v1/claims", query)
    if not found["payments"]:
        return await _page(here, element("p", words("review.none"), class_="empty"))
    shown = join_html(
        element("p", words("review.yours"), " ", instant(here, found["ends_at"], "%H:%M")),
        element("p", words("review.keys"), class_="hints"),
        element("p", id="refused", class_="bad", role="alert"),
        payment_table(
            here,
            found["payments"],
            data_verdicts="1",
            data_refused=words("review.refused"),
            data_stands=words("review.stands"),
        ),
    )
    return await _page(here, shown)


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
    counted, days, given = await asyncio.gather(
        ask("/v1/payments/count", {"q": _WAITING}),
        ask("/v1/figures", _WAITING_BY_DAY),
        ask("/v1/labels", {"since": hour, "source": SOURCE, "limit": str(_MOST)}),
    )
    count, verdicts = counted["count"], len(given["labels"])
    oldest = next((each for each in days["figures"] if each["tally"]["payments"]), None)
    button = element("button", words("review.take"), autofocus="")
    content = join_html(
        element("h1", words("frame.review")),
        element(
            "p",
            payments_link(here, number(here, count), _WAITING),
            " ",
            words("review.count"),
            " ",
            Html("")
            if oldest is None
            else words("review.oldest", day=written(here, read_instant(oldest["start"]), "%d %b")),
            " ",
            words("review.given", count=f"{verdicts}+" if verdicts == _MOST else verdicts),
        ),
        control_if_allowed(
            here,
            "labels:write",
            element("form", button, method="post", action="/console/review", class_="line"),
        ),
        shown,
    )
    return html(page(here, words("frame.review"), content))
