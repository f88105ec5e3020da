"""Rules, scorecards, event types and definitions: stored as versions, published, rolled back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

from litestar import Response, delete, get, post, put
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json, read_text
from tollkeeper.api.http.errors import invalid
from tollkeeper.api.http.queries import read_count, read_flag, read_version_number
from tollkeeper.engine.events.versions import Planned
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.lists.values import read_instant
from tollkeeper.engine.publish.activate import Rejected, publish, store, unpublish, violations
from tollkeeper.engine.registry.changes import Kind
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.engine.registry.versions import find_lineage, find_version
from tollkeeper.engine.runtime import Engine

PUBLISH_SECONDS = 30.0

# The path and the member of answers of each kind of file.
NOUNS: dict[Kind, tuple[str, str]] = {
    "rule": ("rules", "rule"),
    "scorecard": ("scorecards", "scorecard"),
    "event": ("event-types", "event_type"),
    "definitions": ("definitions", "definitions"),
}


class Chosen(Struct, frozen=True, forbid_unknown_fields=True):
    """Which version is meant; `breaking` and `applies_from` are for event types alone."""

    version: int
    breaking: bool = False
    applies_from: str | None = None


def file_routes(engine: Engine, kind: Kind) -> list[BaseRouteHandler]:
    """The routes of one kind of file (docs/api.md, "Beside payments")."""
    path, noun = NOUNS[kind]
    base = f"/v1/{path}"

    def account_of(request: AnyRequest) -> Account:
        key = require(engine.state, request.scope, "rules")
        return engine.state.accounts[key.account]

    @get(base, operation_id=f"list_{path}")
    async def list_(request: AnyRequest) -> dict[str, Any]:
        account = account_of(request)
        return {
            path: [
                summary(engine, account.number, name, lineage)
                for (of, name), lineage in sorted(account.files.items())
                if of == kind
            ]
        }

    @get(f"{base}/{{name:str}}", operation_id=f"read_{noun}")
    async def read(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        account = account_of(request)
        lineage = find_lineage(account, kind, name)
        return {noun: shown(engine, account.number, name, lineage)}

    @get(f"{base}/{{name:str}}/versions/{{number:str}}", operation_id=f"read_{noun}_version")
    async def read_version(
        request: AnyRequest, name: FromPath[str], number: FromPath[str]
    ) -> dict[str, Any]:
        account = account_of(request)
        return {noun: shown_version(find_version(account, kind, name, read_version_number(number)))}

    @post(f"{base}/{{name:str}}/versions", operation_id=f"store_{noun}")
    async def store_(
        request: AnyRequest,
        name: FromPath[str],
        publish: FromQuery[str | None] = None,
        expected: FromQuery[str | None] = None,
        breaking: FromQuery[str | None] = None,
        applies_from: FromQuery[str | None] = None,
    ) -> Response[dict[str, Any]]:
        key = require(engine.state, request.scope, "rules")
        at_once, newest = read_flag("publish", publish), read_count("expected", expected)
        planned = read_plan(read_flag("breaking", breaking), applies_from)
        content = await read_text(request)
        try:
            stored = await store(engine, key.account, key.id, kind, name, content, newest)
        except Rejected as rejected:
            raise invalid(violations(name, rejected)) from None
        number = stored.version.number
        if at_once:
            return await published(key.account, key.id, name, number, planned, HTTPStatus.CREATED)
        active = engine.state.accounts[key.account].files[kind, name].active == number
        return Response(
            {noun: {"name": name, "version": number, "active": active}}, status_code=201
        )

    @put(f"{base}/{{name:str}}/active", operation_id=f"activate_{noun}")
    async def activate(request: AnyRequest, name: FromPath[str]) -> Response[dict[str, Any]]:
        key = require(engine.state, request.scope, "rules")
        chosen = await read_json(request, Chosen)
        planned = read_plan(chosen.breaking, chosen.applies_from)
        return await published(key.account, key.id, name, chosen.version, planned, HTTPStatus.OK)

    @delete(f"{base}/{{name:str}}/active", operation_id=f"deactivate_{noun}", status_code=200)
    async def deactivate(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        await unpublish(engine, key.account, key.id, kind, name)
        return {noun: {"name": name, "active": False}}

    async def published(
        account: int, by: str, name: str, number: int, planned: Planned, status: HTTPStatus
    ) -> Response[dict[str, Any]]:
        doing = publish(engine, account, by, kind, name, number, untold, planned)
        filling = await within_time(engine, account, kind, name, doing)
        answer = {"name": name, "version": number, "active": filling is None}
        return filled(noun, answer, filling, status)

    return [list_, read, read_version, store_, activate, deactivate]


def untold(_share: float) -> None:
    """Nobody waits to hear how far it is: `engine.filling` tells a summary of the file."""


async def within_time(
    engine: Engine, account: int, kind: Kind, name: str, doing: Coroutine[Any, Any, None]
) -> float | None:
    """None once it is done; the share of its windows that are filled when it takes longer."""
    of = (account, kind, name)
    task = asyncio.create_task(doing)
    engine.background.add(task)
    task.add_done_callback(lambda _: engine.filling.pop(of, None))
    task.add_done_callback(engine.background.discard)
    done, _ = await asyncio.wait([task], timeout=PUBLISH_SECONDS)
    if done:
        task.result()
        return None
    return engine.filling.get(of, 0.0)


def filled(
    noun: str, answer: dict[str, Any], filling: float | None, status: HTTPStatus
) -> Response[dict[str, Any]]:
    """`status` for what is done; 202 for what goes on, with the share of windows filled."""
    if filling is None:
        return Response({noun: answer}, status_code=status)
    answer["filling"] = round(filling, 2)
    return Response({noun: answer}, status_code=HTTPStatus.ACCEPTED)


def read_plan(breaking: bool, applies_from: str | None) -> Planned:
    """How an event type's version is published. Raises `Problem` 422."""
    try:
        return Planned(
            breaking, None if applies_from is None else read_instant(applies_from.replace(" ", "+"))
        )
    except ValueError as error:
        raise invalid([Violation("applies_from", "invalid_format", str(error))]) from None


def summary(engine: Engine, account: int, name: str, lineage: Lineage) -> dict[str, Any]:
    """One file among others: its newest version, the one that is active, what is on trial."""
    newest = lineage.versions[-1]
    answer: dict[str, Any] = {
        "name": name,
        "newest": newest.number,
        "active": lineage.active,
        "shadow": lineage.shadow,
        "rollout": lineage.rollout,
    }
    share = engine.filling.get((account, newest.kind, name))
    if share is not None:
        answer["filling"] = round(share, 2)
    return answer


def shown(engine: Engine, account: int, name: str, lineage: Lineage) -> dict[str, Any]:
    """A file with all its versions, newest first, and the text of the active or newest one."""
    text_of = lineage.versions[(lineage.active or len(lineage.versions)) - 1]
    versions = [
        {
            "version": version.number,
            "stored_at": show_instant(version.stored_at),
            "stored_by": version.stored_by,
            "checksum": version.checksum,
        }
        for version in reversed(lineage.versions)
    ]
    return {
        **summary(engine, account, name, lineage),
        "text": text_of.text,
        "versions": versions,
    }


def shown_version(version: Version) -> dict[str, Any]:
    return {
        "name": version.name,
        "version": version.number,
        "text": version.text,
        "uses": dict(version.uses),
        "checksum": version.checksum,
        "language": version.language,
        "stored_at": show_instant(version.stored_at),
        "stored_by": version.stored_by,
    }
