"""One person's data erased, over HTTP."""

from __future__ import annotations

import asyncio

from litestar import post
from litestar.handlers import BaseRouteHandler
from msgspec import Struct

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json
from tollkeeper.engine.intake.payment import RequiredText
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.registry.changes import PersonErased
from tollkeeper.engine.runtime import Engine


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's identifier, as payments name it."""

    user: RequiredText


class Erasure(Struct, frozen=True):
    """What was erased: how many payments, events and alerts told of the person, and how many
    entries went from each list.

    `person` is the SHA-256, in hex, of the identifier, by which the audit log names the erasure.
    """

    person: str
    payments: int
    events: int
    alerts: int
    list_entries: dict[str, int]


def erasure_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The routes of `/erasures`."""

    @post("/v1/erasures", operation_id="erase_person", status_code=200)
    async def erase(request: AnyRequest) -> dict[str, Erasure]:
        key = require(engine.state, request.scope, "admin")
        asked = await read_json(request, Asked)
        erasing = asyncio.create_task(erase_user(engine, key.account, key.id, asked.user))
        # It goes on to its end, should the client leave.
        engine.background.add(erasing)
        erasing.add_done_callback(engine.background.discard)
        return {"erasure": shown(await asyncio.shield(erasing))}

    return [erase]


def shown(erased: PersonErased) -> Erasure:
    return Erasure(
        erased.person, erased.payments, erased.events, erased.alerts, erased.list_entries
    )
