"""Work that goes on only while somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tollkeeper.api.http.errors import nobody_waits
from tollkeeper.api.http.request import Request

T = TypeVar("T")


async def while_awaited(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, which ends when the request's client leaves; its body was read before.

    Raises `Problem` 400 then, which nobody hears.
    """
    doing = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request))
    leaving.add_done_callback(lambda _: doing.cancel())
    try:
        return await doing
    except asyncio.CancelledError:
        if leaving.cancelled() or not leaving.done():
            raise
        request.log["disconnected"] = True
        raise nobody_waits() from None
    finally:
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
