"""Keys and scopes over HTTP (docs/api.md, "Authentication")."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable

import pytest

from tollkeeper.api.http.authentication import ANY_SCOPE
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.engine.publish.accounts import RevokeKey
from tollkeeper.engine.registry.scopes import SCOPES
from tollkeeper.tests.api.http.service import NOW, Service, errors, payment

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "value", [None, "", "Bearer", "Bearer ", "Bearer nonsense", "Basic abc", "Bearer " + "x" * 9000]
)
async def test_a_bad_or_missing_key_is_401(shared_service: Service, value: str | None) -> None:
    headers = {} if value is None else {"authorization": value}
    async with shared_service.client_with(None) as client:
        for request in (
            client.build_request("POST", "/v1/payments", json=payment(), headers=headers),
            client.build_request("PATCH", "/v1/payments/x", json={}, headers=headers),
            client.build_request("GET", "/v1/rules", headers=headers),
        ):
            answer = await client.send(request)
            assert answer.status_code == 401
            assert errors(answer) == [("authorization", "invalid_credentials")]
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_without_the_scope_is_403(service: Service) -> None:
    async with service.client_with(await service.key("shop", "payments")) as client:
        answer = await client.get("/v1/rules")
        assert answer.status_code == 403
        assert errors(answer) == [("authorization", "forbidden")]
    async with service.client_with(await service.key("shop", "rules")) as client:
        answer = await client.post("/v1/payments", json=payment())
        assert answer.status_code == 403


async def test_an_admin_key_may_do_all(service: Service) -> None:
    async with service.client_with(await service.key("shop", "admin")) as client:
        assert (await client.post("/v1/payments", json=payment())).status_code == 201
        assert (await client.get("/v1/rules")).status_code == 200


async def test_a_revoked_key_is_refused_at_once(service: Service) -> None:
    key = await service.key("shop", "payments")
    async with service.client_with(key) as client:
        assert (await client.get("/v1/payments/x")).status_code == 404
        await RevokeKey("shop", key[:13]).perform(service.engine, "test", lambda _: None)
        assert (await client.get("/v1/payments/x")).status_code == 401


async def test_a_key_that_ends_while_a_body_arrives_is_refused(service: Service) -> None:
    key = await service.key("shop", "admin")
    user = {"user": {"role": "lead"}}
    await service.client.put("/v1/users/ana", json=user)
    code = (await service.client.post("/v1/users/ana/links")).json()["link"]["code"]
    sent = {"session": {"code": code}}
    session = (await service.client.post("/v1/sessions", json=sent)).json()["session"]["token"]

    async def ending(body: bytes, end: Awaitable[object]) -> AsyncIterator[bytes]:
        yield body[:5]
        await end
        yield body[5:]

    wanted = {"scopes": ["admin"]}
    revoked = RevokeKey("shop", key[:13]).perform(service.engine, "test", lambda _share: None)
    async with service.client_with(key) as client:
        slow = ending(json.dumps({"key": wanted}).encode(), revoked)
        assert (await client.post("/v1/keys", content=slow)).status_code == 401
    demoted = service.client.put("/v1/users/ana", json={"user": {"role": "viewer"}})
    async with service.client_with(session) as client:
        slow = ending(json.dumps({"account": {"time_zone": "Asia/Tokyo"}}).encode(), demoted)
        assert (await client.put("/v1/account", content=slow)).status_code == 403
    assert (await service.client.get("/v1/account")).json()["account"]["time_zone"] == "UTC"


async def test_one_account_sees_nothing_of_another(service: Service) -> None:
    await service.account("rival")
    await service.client.post("/v1/payments", json=payment(id="p-1"))
    async with service.client_with(await service.key("rival", "payments")) as rival:
        assert (await rival.get("/v1/payments/p-1")).status_code == 404
        theirs = await rival.post("/v1/payments", json=payment(id="p-1"))
        assert theirs.status_code == 201


async def test_only_a_hash_of_a_key_is_stored(service: Service) -> None:
    key = await service.key("shop", "payments")
    stored = b"".join(
        path.read_bytes()
        for path in service.folder.iterdir()
        if path.name.startswith("tollkeeper.db")
    )
    assert key.encode() not in stored


async def test_a_narrow_key_creates_payments_and_reads_none(service: Service) -> None:
    async with service.client_with(await service.key("shop", "payments:write")) as client:
        assert (await client.post("/v1/payments", json=payment(id="p-1"))).status_code == 201
        answer = await client.get("/v1/payments/p-1")
    assert answer.status_code == 403
    assert answer.json()["errors"][0]["message"] == "this key has no `personal:read` scope"


async def test_a_key_that_stores_versions_publishes_none(service: Service) -> None:
    text = "rule shop\n  condition c when amount > 1 then deny\n"
    headers = {"content-type": "text/plain"}
    async with service.client_with(await service.key("shop", "rules:write")) as client:
        stored = await client.post("/v1/rules/shop/versions", content=text, headers=headers)
        published = await client.post(
            "/v1/rules/shop/versions?publish=true", content=text, headers=headers
        )
        activated = await client.put("/v1/rules/shop/active", json={"version": 1})
    assert [stored.status_code, published.status_code, activated.status_code] == [201, 403, 403]


async def test_a_keys_last_use_is_known(service: Service) -> None:
    key = await service.key("shop", "payments:write")
    assert key[:13] not in service.engine.key_uses
    async with service.client_with(key) as client:
        await client.post("/v1/payments", json=payment())
    assert service.engine.key_uses[key[:13]] == NOW


async def test_every_operation_names_a_scope_that_some_bundle_has(service: Service) -> None:
    needed = {route.opt["scope"] for route in ROUTES}
    assert needed == {*SCOPES, ANY_SCOPE, None}


async def test_whoever_may_make_keys_may_give_what_they_may_not_do(service: Service) -> None:
    key = await service.key("shop", "users:write")
    async with service.client_with(key) as client:
        asked = {"key": {"scopes": ["payments:write"]}}
        made = (await client.post("/v1/keys", json=asked)).json()["key"]
        assert (await client.post("/v1/payments", json=payment())).status_code == 403
    async with service.client_with(made["secret"]) as client:
        assert (await client.post("/v1/payments", json=payment())).status_code == 201
