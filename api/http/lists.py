"""Lists and tables over HTTP (docs/api.md, "Beside payments")."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Response, delete, get, put
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery
from msgspec import UNSET, Struct, UnsetType

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json
from tollkeeper.api.http.queries import read_limit
from tollkeeper.engine.lists.entries import show_entry
from tollkeeper.engine.lists.spec import EntryType, ListSpec, Lookup, Spec
from tollkeeper.engine.publish import change_lists as list_changes
from tollkeeper.engine.registry.lists import find_list, read_spec
from tollkeeper.engine.runtime import Engine

BASE = "/v1/lists"


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """A list has a `type`, a table `by` and `columns`."""

    type: EntryType | UnsetType = UNSET
    by: Lookup | UnsetType = UNSET
    columns: dict[str, Any] | UnsetType = UNSET


class Entries(Struct, frozen=True, forbid_unknown_fields=True):
    """Entries as `read_entry` takes them; to remove them, their values are enough."""

    entries: tuple[Any, ...]


def list_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The routes of an account's lists and tables."""

    @get(BASE, operation_id="list_lists")
    async def list_(request: AnyRequest) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        lists = engine.state.accounts[key.account].lists
        return {"lists": [shown(name, lists[name].spec) for name in sorted(lists)]}

    @get(f"{BASE}/{{name:str}}", operation_id="read_list")
    async def read(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        return {"list": shown(name, find_list(engine.state.accounts[key.account], name).spec)}

    @put(f"{BASE}/{{name:str}}", operation_id="make_list")
    async def make(request: AnyRequest, name: FromPath[str]) -> Response[dict[str, Any]]:
        key = require(engine.state, request.scope, "rules")
        spec = read_spec(msgspec.to_builtins(await read_json(request, Asked)))
        made = await list_changes.make(engine, key.account, key.id, name, spec)
        kept = engine.state.accounts[key.account].lists[name].spec
        status = HTTPStatus.CREATED if made else HTTPStatus.OK
        return Response({"list": shown(name, kept)}, status_code=status)

    @get(f"{BASE}/{{name:str}}/entries", operation_id="read_entries")
    async def read_entries(
        request: AnyRequest,
        name: FromPath[str],
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[str | None] = None,
    ) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        spec = find_list(engine.state.accounts[key.account], name).spec
        most = read_limit(limit)
        page = await list_changes.page(engine.journal, key.account, name, cursor, most)
        entries = [show_entry(spec, entry) for entry in page.entries]
        return {"entries": entries, "cursor": page.cursor}

    @put(f"{BASE}/{{name:str}}/entries", operation_id="put_entries")
    async def put_entries(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        find_list(engine.state.accounts[key.account], name)
        sent = await read_json(request, Entries)
        count = await list_changes.put(engine, key.account, key.id, name, sent.entries)
        return {"list": {"name": name, "put": count}}

    @delete(f"{BASE}/{{name:str}}/entries", operation_id="remove_entries", status_code=200)
    async def remove_entries(request: AnyRequest, name: FromPath[str]) -> dict[str, Any]:
        key = require(engine.state, request.scope, "rules")
        find_list(engine.state.accounts[key.account], name)
        sent = await read_json(request, Entries)
        values = [item.get("value") if isinstance(item, dict) else item for item in sent.entries]
        count = await list_changes.remove(engine, key.account, key.id, name, values)
        return {"list": {"name": name, "removed": count}}

    return [list_, read, make, read_entries, put_entries, remove_entries]


def shown(name: str, spec: Spec) -> dict[str, Any]:
    """A list in the form that `PUT /lists/{name}` takes, with its name."""
    if isinstance(spec, ListSpec):
        return {"name": name, "type": spec.type}
    return {"name": name, "by": spec.by, "columns": msgspec.to_builtins(spec.columns)}
