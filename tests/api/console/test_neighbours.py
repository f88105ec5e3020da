"""The console of a newer node asks an owner of the release before, as while nodes are upgraded."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tollkeeper.api.console.application import with_console
from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.api.console.test_four_eyes import need_two, proposed

pytestmark = pytest.mark.anyio

YOUNGER = {"guarded", "void", "expires_at", "alone_until"}
"""Members of answers that the newest release brings."""
ALONE = Settings(
    console="off", key_work=1_000_000, account_work=1_000_000, account_changes=1_000_000
)


def before(newer: ASGIApp) -> ASGIApp:
    """The interface as the release before answers: without the members that are younger."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        start: list[Message] = []
        body = bytearray()

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                answer = json.dumps(_without(json.loads(body))).encode() if body else b""
                headers = [each for each in start[0]["headers"] if each[0] != b"content-length"]
                await send({**start[0], "headers": headers})
                await send({"type": "http.response.body", "body": answer})

        await newer(scope, receive, keep)

    return handle


def _without(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_without(each) for each in answer]
    if isinstance(answer, dict):
        return {name: _without(held) for name, held in answer.items() if name not in YOUNGER}
    return answer


def beside(shop: Shop) -> httpx.AsyncClient:
    """A browser at a newer node."""
    owner = public_app(service_of(shop.service.engine, ALONE, jobs=shop.service.jobs))
    transport = httpx.ASGITransport(with_console(before(owner)))  # type: ignore[arg-type]
    headers = {"cookie": shop.browser.headers["cookie"]}
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)


async def test_settings_are_saved_through_an_owner_of_the_release_before(own_shop: Shop) -> None:
    form = {"challenge": "0.5", "deny": "0.8", "time_zone": "UTC", "retention_days": "365"}
    form |= {"chargeback": "15", "margin": "0.1", "challenge_lost": "0.03"}
    form |= {"percent": "0", "by": "user", "note": "stricter"}
    async with beside(own_shop) as browser:
        saved = await browser.post("/console/settings", data=form)
        assert saved.headers["location"] == "/console/settings?saved=1", saved.text
        await need_two(own_shop)
        both = {"approve_publish": "1", "approve_thresholds": "1"}
        refused = await browser.post("/console/settings", data={**form, **both, "deny": "0.7"})
        assert refused.status_code == 403
        assert "another person must approve this: propose it" in refused.text
    account = (await own_shop.service.client.get("/v1/account")).json()["account"]
    assert account["thresholds"]["deny"] == 0.8


async def test_proposals_are_read_and_decided_through_an_owner_of_the_release_before(
    own_shop: Shop,
) -> None:
    await need_two(own_shop)
    await proposed(own_shop, unpublish={"name": "gate"})
    async with beside(own_shop) as browser:
        seen = await browser.get("/console/changes")
        assert seen.status_code == 200
        assert 'value="approve"' in seen.text
        refused = {"act": "refuse", "reason": "a mistake"}
        assert (await browser.post("/console/changes/1", data=refused)).status_code == 303
