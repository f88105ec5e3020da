"""Versions on trial over HTTP: a shadow beside the active version, a rollout to a percentage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final, cast

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from msgspec import UNSET, Meta, Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.file_kinds import DECIDERS, FileKind
from tollkeeper.api.http.files import (
    EventVersionChoice,
    FileName,
    VersionChoice,
    require_passing,
)
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.publishing import Filling, accepted_response, later, within_time
from tollkeeper.api.http.request import Request
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.publish.activate import place_diagnostics
from tollkeeper.engine.publish.trials import ClearRollout, ClearShadow, SetRollout, SetShadow
from tollkeeper.engine.registry.changes import RolloutKey
from tollkeeper.engine.registry.trials import Decider, has_decided, set_rollout
from tollkeeper.engine.registry.versions import check_publish_alone, find_version
from tollkeeper.engine.shadows.report import ShadowReport, shadow_report


class RolloutBody(Struct, frozen=True, forbid_unknown_fields=True):
    """`percent` of the payments, selected by their `by`, are decided by this version."""

    version: int
    percent: Annotated[int, Meta(ge=0, le=100)]
    by: RolloutKey


class ShadowReportAnswer(Struct, frozen=True):
    shadow: ShadowReport


class ShadowState(Struct, frozen=True):
    name: str
    shadow: int | None
    filling: Filling = UNSET


class RolloutState(Struct, frozen=True):
    """`warnings` say which `must` lines of the version are not proved or were not tried."""

    name: str
    rollout: RolloutBody | None
    warnings: list[Violation]
    filling: Filling = UNSET


def report_route(file_kind: FileKind) -> HTTPRouteHandler:
    @operation(
        "GET",
        f"{file_kind.base}/{{name:str}}/shadow",
        f"report_{file_kind.noun}_shadow",
        tag=file_kind.tag,
        summary=f"Report what a {file_kind.noun}'s shadow would change",
        doc=(
            "How many decisions would change from which action to which, with examples. Of many, "
            "the newest are counted: those recorded since `since`."
        ),
        scope="rules:read",
        answers={200: Answer("The report.")},
        refusals=(404, 503),
    )
    async def report(request: Request, name: FileName) -> ShadowReportAnswer:
        journal, account = request.engine.journal, request.account
        found = await asyncio.to_thread(shadow_report, journal, account, decider(file_kind), name)
        return ShadowReportAnswer(found)

    return report


def shadow_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("ShadowAnswer", ShadowState)

    @operation(
        "PUT",
        f"{file_kind.base}/{{name:str}}/shadow",
        f"set_{file_kind.noun}_shadow",
        tag=file_kind.tag,
        summary=f"Evaluate a version of a {file_kind.noun} beside the active one",
        doc="Its decisions are recorded but never applied; it delays no answer.",
        scope="rules:write",
        demand="change",
        sent=Body(VersionChoice, {"second": Example("version 2", {"version": 2})}),
        answers={200: Answer("It is evaluated from now on.", answer), 202: later(answer)},
        refusals=(404, 409, 503),
    )
    async def shadow(request: Request, name: FileName) -> Response[Struct]:
        number = (await read_json(request, EventVersionChoice)).version
        doing = request.perform(SetShadow(request.account.name, decider(file_kind), name, number))
        filling = await within_time(
            request.engine, request.key.account, file_kind.kind, name, doing
        )
        return accepted_response(answer(ShadowState(name, number, filling)), filling, HTTPStatus.OK)

    return shadow


def end_shadow_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("ShadowAnswer", ShadowState)

    @operation(
        "DELETE",
        f"{file_kind.base}/{{name:str}}/shadow",
        f"clear_{file_kind.noun}_shadow",
        tag=file_kind.tag,
        summary=f"End a {file_kind.noun}'s shadow",
        doc="Its recorded decisions stay.",
        scope="rules:write",
        demand="change",
        answers={200: Answer("The shadow has ended.", answer)},
        refusals=(404, 409, 503),
    )
    async def end_shadow(request: Request, name: FileName) -> Struct:
        await request.perform(ClearShadow(request.account.name, decider(file_kind), name))
        return answer(ShadowState(name, None))

    return end_shadow


def rollout_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("RolloutAnswer", RolloutState)

    @operation(
        "PUT",
        f"{file_kind.base}/{{name:str}}/rollout",
        f"set_{file_kind.noun}_rollout",
        tag=file_kind.tag,
        summary=f"Roll a version of a {file_kind.noun} out to a percentage of the payments",
        doc=(
            "The same user, device or order always gets the same version. A payment without "
            "the key gets the active version. The tests of a version that has not decided before "
            "run first."
        ),
        scope="rules:publish",
        demand="change",
        sent=Body(
            RolloutBody,
            {"tenth": Example("a tenth of the users", {"version": 2, "percent": 10, "by": "user"})},
        ),
        answers={200: Answer("It decides that part of the payments.", answer), 202: later(answer)},
        refusals=(404, 409, 422, 503),
    )
    async def rollout(request: Request, name: FileName) -> Response[Struct]:
        sent = await read_json(request, RolloutBody)
        account, kind = request.account, decider(file_kind)
        check_publish_alone(account)
        set_rollout(account, kind, name, sent.version, sent.percent, sent.by)
        version = find_version(account, kind, name, sent.version)
        found = []
        if not has_decided(account, version):
            found = await require_passing(request, name, version.text.encode())
        warnings = place_diagnostics(name, version.text, found)
        doing = request.perform(
            SetRollout(account.name, kind, name, sent.version, sent.percent, sent.by)
        )
        filling = await within_time(
            request.engine, request.key.account, file_kind.kind, name, doing
        )
        state = RolloutState(name, sent, warnings, filling)
        return accepted_response(answer(state), filling, HTTPStatus.OK)

    return rollout


def end_rollout_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("RolloutAnswer", RolloutState)

    @operation(
        "DELETE",
        f"{file_kind.base}/{{name:str}}/rollout",
        f"clear_{file_kind.noun}_rollout",
        tag=file_kind.tag,
        summary=f"End a {file_kind.noun}'s rollout",
        doc="The active version decides all payments again.",
        scope="rules:publish",
        demand="change",
        answers={200: Answer("The rollout has ended.", answer)},
        refusals=(404, 409, 503),
    )
    async def end_rollout(request: Request, name: FileName) -> Struct:
        await request.perform(ClearRollout(request.account.name, decider(file_kind), name))
        return answer(RolloutState(name, None, []))

    return end_rollout


def decider(file_kind: FileKind) -> Decider:
    return cast("Decider", file_kind.kind)


_MAKERS: Final[tuple[Callable[[FileKind], HTTPRouteHandler], ...]] = (
    report_route,
    shadow_route,
    end_shadow_route,
    rollout_route,
    end_rollout_route,
)
ROUTES = tuple(make(file_kind) for file_kind in DECIDERS for make in _MAKERS)
