"""Wait for a version to take effect, as long as a client can wait."""

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

Share = Annotated[
    float, Meta(ge=0, le=1, description="The share of the windows that are filled so far.")
]
Filling = Share | UnsetType
"""Set while windows are being filled."""


async def within_time(
    engine: Engine, account: int, kind: ProgramKind, name: str, doing: Coroutine[Any, Any, object]
) -> Filling:
    """Wait for `doing`. Returns unset if it completed; if it takes longer, the share of its windows
    that are filled.
    """
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
    """Return the filled share of a file's windows, with two decimals."""
    share = engine.filling.get((account, kind, name))
    return UNSET if share is None else round(share, 2)


def accepted_response(body: Struct, filling: Filling, status: HTTPStatus) -> Response[Struct]:
    """Answer with `status` if it is done, 202 if it continues."""
    return Response(body, status_code=status if filling is UNSET else HTTPStatus.ACCEPTED)


def later(type_: Any) -> Answer:
    """Describe the 202 answer."""
    return Answer(
        (
            f"Filling the windows from history takes longer than {PUBLISH_SECONDS:g} "
            "seconds; it continues, and the change takes effect when they are complete."
        ),
        type_,
    )
