"""Differences in meaning between two versions of a file, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from tollkeeper.api.http.file_kinds import FILE_KINDS, FileKind
from tollkeeper.api.http.files import FileName
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import query_parameter, whole
from tollkeeper.api.http.queries import read_count
from tollkeeper.api.http.request import Request
from tollkeeper.engine.publish.diff import Difference, diff
from tollkeeper.engine.registry.versions import find_lineage, find_version


class DifferenceList(Struct, frozen=True):
    differences: tuple[Difference, ...]


def difference_route(of: FileKind) -> HTTPRouteHandler:
    @operation(
        "GET",
        f"{of.base}/{{name:str}}/diff",
        f"diff_{of.noun}",
        tag=of.tag,
        summary=f"Show what changed in meaning between two versions of {of.one}",
        doc=(
            "What was added, removed, moved or changed, in the author's terms, `must` lines "
            "and tests included; nothing for two texts with the same meaning."
        ),
        scope="rules:read",
        answers={200: Answer("The differences.")},
        refusals=(404, 422),
    )
    async def read_differences(
        request: Request,
        name: FileName,
        from_: Annotated[
            str | None,
            query_parameter(
                "The older version; by default the one before `to`.", whole(1), 1, "from"
            ),
        ] = None,
        to: Annotated[
            str | None,
            query_parameter("The newer version; by default the newest.", whole(1), 2),
        ] = None,
    ) -> DifferenceList:
        before, after = read_count("from", from_), read_count("to", to)
        if after is None:
            after = len(find_lineage(request.account, of.kind, name).versions)
        if before is None:
            before = max(1, after - 1)
        old, new = (
            find_version(request.account, of.kind, name, number) for number in (before, after)
        )
        return DifferenceList(await asyncio.to_thread(diff, old, new))

    return read_differences


ROUTES = tuple(difference_route(of) for of in FILE_KINDS)
