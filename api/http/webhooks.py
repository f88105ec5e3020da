"""`/v1/webhooks`: where alerts are sent, and how each delivery fares."""

from __future__ import annotations

from typing import Any

from litestar import delete, get, put
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery
from msgspec import Struct

from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json
from tollkeeper.api.http.queries import read_limit, read_place, show_place
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Delivery
from tollkeeper.engine.monitors.webhook_reach import check_reach
from tollkeeper.engine.publish.make_change import make_change
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.registry.webhooks import remove_webhook, set_webhook
from tollkeeper.engine.runtime import Engine


class Sent(Struct, frozen=True, forbid_unknown_fields=True):
    """An address, with one secret, or two while one replaces the other."""

    url: str
    secrets: tuple[str, ...]


class SentBody(Struct, frozen=True, forbid_unknown_fields=True):
    webhook: Sent


def webhook_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The routes of `/webhooks`."""

    @get("/v1/webhooks", operation_id="list_webhooks")
    async def list_(request: AnyRequest) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        webhooks = engine.state.accounts[key.account].webhooks
        return {"webhooks": [shown(webhooks[url]) for url in sorted(webhooks)]}

    @put("/v1/webhooks", operation_id="set_webhook")
    async def set_(request: AnyRequest) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        sent = (await read_json(request, SentBody)).webhook
        async with engine.changing:
            account = engine.state.accounts[key.account]
            change = set_webhook(account, sent.url, sent.secrets)
            check_reach(sent.url, engine.reach)
            await make_change(engine, key.account, key.id, change)
        return {"webhook": shown(engine.state.accounts[key.account].webhooks[sent.url])}

    @delete("/v1/webhooks", operation_id="remove_webhook", status_code=200)
    async def remove(request: AnyRequest, url: FromQuery[str] = "") -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        async with engine.changing:
            change = remove_webhook(engine.state.accounts[key.account], url)
            await make_change(engine, key.account, key.id, change)
        return {"webhook": {"url": url}}

    @get("/v1/webhooks/deliveries", operation_id="list_deliveries")
    async def list_deliveries(
        request: AnyRequest,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[str | None] = None,
    ) -> dict[str, Any]:
        key = require(engine.state, request.scope, "admin")
        before, most = read_place("cursor", cursor), read_limit(limit)
        found = engine.outbox.read(lambda c: outbox.deliveries(c, key.account, before, most))
        return {
            "deliveries": list(map(shown_delivery, found)),
            "cursor": show_place(found[-1].sequence if len(found) >= most else None),
        }

    return [list_, set_, remove, list_deliveries]


def shown(webhook: Webhook) -> dict[str, Any]:
    """A webhook with the number of its secrets, which are never shown."""
    return {"url": webhook.url, "secrets": len(webhook.secrets)}


def shown_delivery(delivery: Delivery) -> dict[str, Any]:
    """`next_at` while it is pending, `delivered_at` once it is delivered."""
    pending = delivery.state == "pending"
    at = delivery.delivered_at
    return {
        "id": delivery.id,
        "alert": f"{delivery.sequence}-{delivery.number}",
        "url": delivery.url,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "status": delivery.status,
        "error": delivery.error,
        "next_at": show_instant(delivery.next_at) if pending else None,
        "delivered_at": None if at is None else show_instant(at),
    }
