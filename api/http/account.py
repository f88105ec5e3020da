"""The account's settings over HTTP."""

from __future__ import annotations

from typing import Any

from litestar import get, put
from litestar.handlers import BaseRouteHandler
from msgspec import Struct

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json
from tollkeeper.engine.publish.set_settings import set_settings
from tollkeeper.engine.registry.settings import show_settings
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.runtime import Engine


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings to change: one left out keeps its value."""

    account: dict[str, Any]


class WindowsShown(Struct, frozen=True):
    """How many elements the account's windows hold, of how many.

    `over_cap` says that one was given up to stay within: what reads it finds nothing there.
    """

    entries: int
    cap: int
    over_cap: bool


def account_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The routes of `/account`."""

    @get("/v1/account", operation_id="read_account")
    async def read(request: AnyRequest) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        status = await engine.windows.status(key.account)
        return {
            "account": shown(engine.state.accounts[key.account]),
            "windows": WindowsShown(status.entries, status.cap, status.over_cap),
        }

    @put("/v1/account", operation_id="change_account")
    async def change(request: AnyRequest) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        asked = (await read_json(request, Asked)).account
        if asked.get("name") == engine.state.accounts[key.account].name:
            # It is shown among the settings, so it comes back with them.
            del asked["name"]
        await set_settings(engine, key.account, key.id, asked)
        return {"account": shown(engine.state.accounts[key.account])}

    return [read, change]


def shown(account: Account) -> dict[str, Any]:
    return {"name": account.name, **show_settings(account.settings)}
