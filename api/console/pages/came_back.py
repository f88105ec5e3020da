"""Who was denied, and came back and paid: the payments that a rule's performance tells of."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import number, payment_table
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

CAME_BACK = "/console/came-back"
_PLACE = re.compile("[0-9]{1,9}")
_AT_ONCE = 50
"""So many ids a search takes, and a page shows."""


@get(CAME_BACK)
async def came_back(request: Request[Any, Any, Any]) -> Response[str]:
    """Of all rules in force, or of one `condition` of a `version` of a `rule`; with `followed` those
    that came back, else all of which that is known.
    """
    here = await visit(request)
    words, wanted = here.words, here.query
    found = [
        each["came_back"]
        for each in await performances(here, wanted.get("rule"))
        if wanted.get("version") in (None, str(each["version"]))
        and wanted.get("condition") in (None, each["condition"] or "none")
    ]
    which = "followed" if "followed" in wanted else "denied"
    ids = [id_ for each in found for id_ in each[which]]
    begin = int(wanted["from"]) if _PLACE.fullmatch(wanted.get("from", "")) else 0
    rows = await _payments(here, ids[begin : begin + _AT_ONCE])
    end = begin + _AT_ONCE
    content = join_html(
        element("h1", words("came_back.title")),
        element("p", words(f"came_back.{which}"), class_="hints"),
        element(
            "p", words("payments.count", count=number(here, len(ids))), id="count", role="status"
        ),
        await payment_table(here, rows)
        if rows
        else element("p", words("payments.none"), class_="empty"),
        element(
            "a", words("payments.older"), href=here.address(**{"from": f"{end}"}), class_="button"
        )
        if end < len(ids)
        else Html(""),
    )
    return html(page(here, words("came_back.title"), content))


async def performances(here: Visit, rule: str | None = None) -> list[JsonObject]:
    """How each condition did: of a rule, or of every rule in force."""
    names = [rule] if rule else await _names_in_force(here)
    answers = await asyncio.gather(
        *(here.client.get(f"/v1/rules/{segment(name)}/performance") for name in names)
    )
    return [each for answer in answers for each in answer["conditions"]]


async def _names_in_force(here: Visit) -> list[str]:
    rules = (await here.client.get("/v1/rules"))["rules"]
    return [each["name"] for each in rules if each["active"] is not None]


async def _payments(here: Visit, ids: Sequence[str]) -> list[JsonObject]:
    if not ids:
        return []
    found: list[JsonObject] = (await here.client.get("/v1/payments", {"id": ids}))["payments"]
    return found
