"""What changed in meaning between two versions of a file, over HTTP."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery, QueryParameter

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.files import NOUNS
from tollkeeper.api.http.queries import read_count
from tollkeeper.engine.publish.diff import Difference, diff
from tollkeeper.engine.registry.changes import Kind
from tollkeeper.engine.registry.versions import find_lineage, find_version
from tollkeeper.engine.runtime import Engine


def difference_routes(engine: Engine, kind: Kind) -> list[BaseRouteHandler]:
    """The routes of one kind of file."""
    path, noun = NOUNS[kind]

    @get(f"/v1/{path}/{{name:str}}/diff", operation_id=f"diff_{noun}")
    async def read(
        request: AnyRequest,
        name: FromPath[str],
        from_: Annotated[str | None, QueryParameter(name="from")] = None,
        to: FromQuery[str | None] = None,
    ) -> dict[str, tuple[Difference, ...]]:
        key = require(engine.state, request.scope, "rules")
        account = engine.state.accounts[key.account]
        before, after = read_count("from", from_), read_count("to", to)
        if after is None:
            after = len(find_lineage(account, kind, name).versions)
        if before is None:
            before = max(1, after - 1)
        old, new = (find_version(account, kind, name, number) for number in (before, after))
        return {"differences": diff(old, new)}

    return [read]
