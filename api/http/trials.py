"""Versions on trial over HTTP: a shadow beside the active version, a rollout to a part."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Annotated, Any, get_args

from litestar import Response, delete, get, put
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath
from msgspec import Meta, Struct

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json
from tollkeeper.api.http.files import NOUNS, Chosen, filled, untold, within_time
from tollkeeper.engine.publish.trials import clear_rollout, clear_shadow, set_rollout, set_shadow
from tollkeeper.engine.registry.changes import RolloutKey
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadows.report import ShadowReport, shadow_report

DECIDERS: tuple[Decider, ...] = get_args(Decider)


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """`percent` of the payments, chosen by their `by`, get the version."""

    version: int
    percent: Annotated[int, Meta(ge=0, le=100)]
    by: RolloutKey


def trial_routes(engine: Engine, kind: Decider) -> list[BaseRouteHandler]:
    """The routes of one kind of file that decides."""
    path, noun = NOUNS[kind]
    base = f"/v1/{path}/{{name:str}}"

    @get(f"{base}/shadow", operation_id=f"report_{noun}_shadow")
    async def report(request: AnyRequest, name: FromPath[str]) -> dict[str, ShadowReport]:
        key = require(engine.state, request.scope, "rules")
        account = engine.state.accounts[key.account]
        found = await asyncio.to_thread(shadow_report, engine.journal, account, kind, name)
        return {"shadow": found}

    @put(f"{base}/shadow", operation_id=f"set_{noun}_shadow")
    async def shadow(request: AnyRequest, name: FromPath[str]) -> Response[dict[str, Any]]:
        key = require(engine.state, request.scope, "rules")
        number = (await read_json(request, Chosen)).version
        doing = set_shadow(engine, key.account, key.id, kind, name, number, untold)
        filling = await within_time(engine, key.account, kind, name, doing)
        return filled(noun, {"name": name, "shadow": number}, filling, HTTPStatus.OK)

    @delete(f"{base}/shadow", operation_id=f"clear_{noun}_shadow", status_code=200)
    async def unshadow(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        await clear_shadow(engine, key.account, key.id, kind, name)
        return {noun: {"name": name, "shadow": None}}

    @put(f"{base}/rollout", operation_id=f"set_{noun}_rollout")
    async def rollout(request: AnyRequest, name: FromPath[str]) -> Response[dict[str, Any]]:
        key = require(engine.state, request.scope, "rules")
        asked = await read_json(request, Asked)
        doing = set_rollout(
            engine,
            key.account,
            key.id,
            kind,
            name,
            asked.version,
            asked.percent,
            asked.by,
            untold,
        )
        filling = await within_time(engine, key.account, kind, name, doing)
        return filled(noun, {"name": name, "rollout": asked}, filling, HTTPStatus.OK)

    @delete(f"{base}/rollout", operation_id=f"clear_{noun}_rollout", status_code=200)
    async def unroll(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        await clear_rollout(engine, key.account, key.id, kind, name)
        return {noun: {"name": name, "rollout": None}}

    return [report, shadow, unshadow, rollout, unroll]
