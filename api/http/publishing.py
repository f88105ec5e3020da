"""Wait for a version to take effect, for as long as a client waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Annotated, Any

from litestar import Response
from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.operation import Answer
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.runtime import Engine

PUBLISH_SECONDS = 30.0

Share = Annotated[float, Meta(ge=0, le=1, description="Share of the windows filled so far.")]
Filling = Share | UnsetType
"""Set while windows are being filled."""


async def within_time(
    engine: Engine, account: int, kind: ProgramKind, name: str, doing: Coroutine[Any, Any, object]
) -> Filling:
    """Unset once it is done; the share of its windows that are filled when it takes longer."""
    of = (account, kind, name)
    task = asyncio.create_task(doing)
    engine.background.add(task)
    task.add_done_callback(lambda _: engine.filling.pop(of, None))
    task.add_done_callback(engine.background.discard)
    done, _ = await asyncio.wait([task], timeout=PUBLISH_SECONDS)
    if done:
        task.result()
        return UNSET
    return filled_share(engine, account, kind, name) or 0.0


def filled_share(engine: Engine, account: int, kind: ProgramKind, name: str) -> Filling:
    """How much of a file's windows is filled, of two decimals."""
    share = engine.filling.get((account, kind, name))
    return UNSET if share is None else round(share, 2)


def accepted_response(body: Struct, filling: Filling, status: HTTPStatus) -> Response[Struct]:
    """`status` for what is done; 202 for what goes on."""
    return Response(body, status_code=status if filling is UNSET else HTTPStatus.ACCEPTED)


def later(type_: Any) -> Answer:
    """The description of the 202."""
    return Answer(
        f"It takes longer than {PUBLISH_SECONDS:g} seconds to fill the windows from history; it "
        "goes on, and takes effect once they are whole.",
        type_,
    )
