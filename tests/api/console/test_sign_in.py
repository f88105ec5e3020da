"""Sessions: by key, by a link that works once, and their end."""

from __future__ import annotations

import httpx
import pytest

from tollkeeper.engine.publish.accounts import RevokeKey
from tollkeeper.engine.publish.sign_in import MakeLink
from tollkeeper.engine.registry import sessions, state
from tollkeeper.tests.api.console.conftest import Shop, sign_in

pytestmark = pytest.mark.anyio

NEARLY_IDLE = sessions.LONGEST_IDLE - 60_000_000


async def link(shop: Shop) -> str:
    made = await MakeLink("shop", "ana", ("admin",)).perform(
        shop.service.engine, "test", lambda _share: None
    )
    assert made.key is not None
    return made.key


async def test_a_link_signs_in_once(shop: Shop) -> None:
    code = await link(shop)
    async with shop.service.client_with(None) as browser:
        shown = await browser.get(f"/console/sign-in?code={code}")
        assert shown.status_code == 200  # a program that only looks at the link uses nothing up
        first = await browser.post("/console/sign-in", data={"code": code})
        again = await browser.post("/console/sign-in", data={"code": code})
    assert first.status_code == 303
    assert again.status_code == 401
    assert "__Host-toll" not in again.headers.get("set-cookie", "")


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(shop: Shop) -> None:
    async with shop.service.client_with(None) as browser:
        answer = await browser.post("/console/sign-in", data={"key": shop.key})
    said = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"secure", "httponly", "path=/", "samesite=lax"} <= said
    assert not any(part.startswith("domain") for part in said)


async def test_after_signing_in_nobody_is_led_to_another_site(shop: Shop) -> None:
    async with shop.service.client_with(None) as browser:
        for back in ("https://evil.example", "//evil.example/console", "/consolation"):
            sent = {"key": shop.key, "back": back}
            answer = await browser.post("/console/sign-in", data=sent)
            assert answer.headers["location"] == "/console"


async def test_after_signing_in_any_page_that_was_asked_for_is_read(shop: Shop) -> None:
    led = {
        "/console/payments?q=user%3Aa+b": "/console/payments?q=user%3Aa+b",
        "/console/payments/\u00e4\U0001f4b3 1": "/console/payments/%C3%A4%F0%9F%92%B3%201",
        "/console\r\nset-cookie: a=b": "/console%0D%0Aset-cookie:%20a=b",
    }
    async with shop.service.client_with(None) as browser:
        for back, location in led.items():
            sent = {"key": shop.key, "back": back}
            answer = await browser.post("/console/sign-in", data=sent)
            assert (answer.status_code, answer.headers["location"]) == (303, location)


async def test_signing_out_ends_the_session_on_the_server(own_shop: Shop) -> None:
    answer = await own_shop.browser.post("/console/sign-out")
    assert answer.status_code == 303
    assert answer.headers["clear-site-data"]
    assert (await own_shop.browser.get("/console")).status_code == 303


async def test_a_session_ends_with_the_key_it_came_from(own_shop: Shop) -> None:
    revoke = RevokeKey("shop", own_shop.key[:13])
    await revoke.perform(own_shop.service.engine, "test", lambda _share: None)
    assert (await own_shop.browser.get("/console")).status_code == 303


async def test_a_session_that_nobody_uses_is_over_after_half_an_hour(own_shop: Shop) -> None:
    engine = own_shop.service.engine
    before = engine.clock()
    engine.clock = lambda: before + NEARLY_IDLE
    assert (await own_shop.browser.get("/console/lists")).status_code == 200
    engine.clock = lambda: before + 2 * sessions.LONGEST_IDLE
    assert (await own_shop.browser.get("/console/lists")).status_code == 303


async def test_a_session_in_use_is_over_after_twelve_hours(own_shop: Shop) -> None:
    engine = own_shop.service.engine
    before = engine.clock()
    for half_hours in range(1, 25):
        engine.clock = lambda at=before + half_hours * (NEARLY_IDLE): at
        answer = await own_shop.browser.get("/console/lists")
    assert answer.status_code == 200
    engine.clock = lambda: before + sessions.LONGEST_SESSION
    assert (await own_shop.browser.get("/console/lists")).status_code == 303


async def test_the_interface_takes_no_cookie(shop: Shop) -> None:
    answer = await shop.browser.get("/v1/payments")
    assert answer.status_code == 401


async def test_the_audit_names_the_person_whom_a_link_signed_in(own_shop: Shop) -> None:
    async with own_shop.service.client_with(None) as browser:
        sent = {"session": {"code": await link(own_shop)}}
        started = (await browser.post("/v1/sessions", json=sent)).json()["session"]
        headers = {"authorization": f"Bearer {started['token']}"}
        who = (await browser.get("/v1/session", headers=headers)).json()["session"]
        assert (who["account"], who["owner"]) == ("shop", "ana")
        made = await browser.put("/v1/lists/new", json={"type": "string"}, headers=headers)
        assert made.status_code == 201
    audit = (await own_shop.service.client.get("/v1/audit")).json()["audit"]
    assert audit[0]["by"] == "ana"


@pytest.mark.parametrize(
    ("form", "status"), [(b"a=b&" * 1000, 422), (b"key=" + b"%41" * 50_000, 413)]
)
async def test_a_form_that_no_page_sends_is_not_read(shop: Shop, form: bytes, status: int) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    async with shop.service.client_with(None) as browser:
        answer = await browser.post("/console/sign-in", content=form, headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "session", [{}, {"key": "a", "code": "b"}, {"code": "none"}, {"key": "toll_none"}]
)
async def test_nothing_else_signs_in(shop: Shop, session: dict[str, str]) -> None:
    async with shop.service.client_with(None) as browser:
        answer: httpx.Response = await browser.post("/v1/sessions", json={"session": session})
    assert answer.status_code == 401


async def test_sessions_beyond_what_is_held_make_the_oldest_end(
    own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_SESSIONS", 2)
    for _ in range(2):
        await (await sign_in(own_shop.service, own_shop.key)).aclose()
    assert (await own_shop.browser.get("/console")).status_code == 303
