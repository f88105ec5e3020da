"""How many items wait, for the menu's links."""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.page import COUNTED_PAGES
from tollkeeper.api.console.visit import visit

_MOST = 99
"""Larger counts are shown as more than this."""


@get("/console/waiting/{name:str}")
async def waiting(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Show the number of open alerts or proposals; nothing if there are none."""
    here = await visit(request)
    if name not in COUNTED_PAGES:
        raise NotFoundException
    if name == "alerts":
        query = {"state": "open", "limit": str(_MOST + 1)}
        count = len((await here.client.get("/v1/alerts", query))["alerts"])
    else:
        proposals = (await here.client.get("/v1/proposals"))["proposals"]
        count = sum(each["open"] for each in proposals)
    return html("" if not count else str(count) if count <= _MOST else f"{_MOST}+")
