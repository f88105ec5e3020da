"""Work that is cancelled when the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tollkeeper.api.http.errors import nobody_waits
from tollkeeper.api.http.request import Request

T = TypeVar("T")


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which is cancelled when the request's client disconnects; the
    body must have been read.

    Raises `Problem` 400 in that case, which nobody receives.
    """
    doing = asyncio.create_task(work)
    leaving = asyncio.create_task(_await_disconnect(request))
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


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
