"""How much waits for somebody, for the links of the menu."""

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
"""More than so many are not told apart."""


@get("/console/waiting/{name:str}")
async def waiting(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Open alerts, or open proposals; nothing where none is."""
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
