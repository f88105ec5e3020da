"""Payments that a person should judge: one by one, by keyboard."""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import number, payment_table
from tollkeeper.api.console.visit import visit
from tollkeeper.api.html import element, joined

_WAITING = "action:challenge action:deny label:none since:7d"
"""What a person has not judged yet, of what was not simply let through."""


@get("/console/review")
async def review(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = (await here.client.get("/v1/payments", {"q": _WAITING, "limit": "50"}))["payments"]
    count = (await here.client.get("/v1/payments/count", {"q": _WAITING}))["count"]
    content = joined(
        element("h1", words("frame.review")),
        element("p", words("review.count", count=number(count))),
        element("p", words("review.keys"), class_="hints"),
        payment_table(here, found, data_verdicts="1")
        if found
        else element("p", words("review.none"), class_="empty"),
    )
    return html(page(here, words("frame.review"), content))
