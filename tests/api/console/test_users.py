"""People: what each role sees and may do, and how they come in and go."""

from __future__ import annotations

import re
from asyncio import create_task, get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from tollkeeper.api.console.page import NAVIGATION
from tollkeeper.api.console.pages.keys import KEYS_PAGE
from tollkeeper.api.console.pages.users import OFFERED_ROLES
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.registry.roles import Role
from tollkeeper.engine.registry.sessions import LONGEST_IDLE
from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.api.http.service import Service, open_service, payment

pytestmark = pytest.mark.anyio

PAGES = (
    *(address for _, address, _ in NAVIGATION),
    "/console/payments/order-1",
    "/console/rules/gate",
    "/console/rules/gate/edit",
    "/console/lists/blocked",
    "/console/settings/users",
    "/console/settings/keys",
    "/console/contain",
)


PATIENT = Settings(key_work=10_000, account_work=10_000, account_changes=10_000)
"""For who follows every link at once."""


@asynccontextmanager
async def come_in(
    shop: Shop, name: str, role: str, *merchants: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser in which the user is signed in by a link."""
    api = shop.service.client
    user = {"role": role, "merchants": [*merchants]}
    set_ = await api.put(f"/v1/users/{name}", json={"user": user})
    assert set_.status_code == 200, set_.text
    code = (await api.post(f"/v1/users/{name}/links")).json()["link"]["code"]
    async with shop.service.client_with(None, PATIENT) as browser:
        answer = await browser.post("/console/sign-in", data={"code": code})
        assert answer.status_code == 303, answer.text
        browser.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        yield browser


async def status(browser: httpx.AsyncClient, address: str, **sent: Any) -> int:
    return (await browser.post(address, data=sent)).status_code


def test_the_page_offers_every_role() -> None:
    assert get_args(Role) == OFFERED_ROLES


@pytest.mark.parametrize(
    ("role", "merchants"),
    [*((role, ()) for role in OFFERED_ROLES), ("viewer", ("m-1",)), ("lead", ("m-1", "m-2"))],
)
async def test_nobody_sees_a_link_or_a_control_that_would_be_refused(
    own_shop: Shop, role: str, merchants: tuple[str, ...]
) -> None:
    async with come_in(own_shop, "ana", role, *merchants) as browser:
        links, actions = set(), set()
        # What is another merchant's is not there for who sees some merchants alone.
        missing = {404} if merchants else set()
        for address in PAGES:
            page = await browser.get(address)
            assert page.status_code in {200, 303, 403} | missing, (role, address, page.text)
            if page.status_code == 200:
                links |= set(re.findall(r'<a [^>]*href="(/console[^"]*)"', page.text))
                actions |= set(re.findall(r'<form[^>]*action="(/console[^"]*)"', page.text))
        for link in links - set(PAGES):
            answer = await browser.get(link.replace("&amp;", "&"))
            # The first page leads who sees some merchants alone to their payments.
            assert answer.status_code in {200, 303} | missing, (role, link)
        # A form without its fields is refused for that, never for who sends it.
        for action in actions - {"/console/sign-out", "/console/payments"}:
            assert await status(browser, action) != 403, (role, action)


WATCH = """event payment
  metric seen = count(payments by merchant.id over 1h)
  monitor burst "Many payments" when seen >= 2 by merchant.id
"""


async def test_who_sees_some_merchants_alone_has_times_and_months_in_the_accounts_zone(
    own_shop: Shop,
) -> None:
    settings = {"account": {"time_zone": "Pacific/Kiritimati"}}
    assert (await own_shop.service.client.put("/v1/account", json=settings)).status_code == 200
    pages = ("/console/payments?q=merchant:m-1", "/console/report?merchant=m-1")
    async with (
        come_in(own_shop, "ana", "analyst", "m-1") as ana,
        come_in(own_shop, "rui", "lead") as rui,
    ):
        for address in pages:
            hers, his = (
                re.findall(r"<time [^>]*>[^<]*|<td[^>]*><span[^>]*><span>\w+ 20\d\d<", page)
                for page in ((await ana.get(address)).text, (await rui.get(address)).text)
            )
            assert hers == his
            assert hers


async def test_who_sees_some_merchants_alone_has_their_alerts_and_the_lists_that_are_shown(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    watched = await api.post("/v1/event-types/payment/versions?publish=true", content=WATCH)
    assert watched.status_code == 201, watched.text
    for number in range(4):
        body = payment(id=f"sale-{number}", merchant={"id": f"shop-{number % 2}"})
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    async with come_in(own_shop, "rui", "lead", "shop-0") as rui:
        first = (await rui.get("/console")).text
        assert "Many payments" in first
        assert "shop-1" not in first
        (link,) = set(re.findall(r'href="(/console/alerts/[^"?]+)"', first))
        shown = (await rui.get(link)).text
        assert "Many payments" in shown
        assert "shop-1" not in shown
        assert await status(rui, link, state="acknowledged", note="a sale") == 303
        menu = set(re.findall(r'data-page="(\w+)"', first))
        assert menu == {"now", "payments", "review", "alerts", "score", "report"}
        for address in ("/console/lists", "/console/rules", "/console/changes", "/console/contain"):
            answer = await rui.get(address)
            if address != "/console/lists":  # it shows that there is none
                assert answer.status_code == 403, address
                assert "This is not for you" in answer.text
                assert "you see shop-0 alone" in answer.text
                assert 'data-page="payments"' in answer.text
        await api.put("/v1/account", json={"account": {"merchant_lists": ["blocked"]}})
        assert 'data-page="lists"' in (await rui.get("/console")).text
        assert (await rui.get("/console/lists/blocked")).status_code == 200


async def test_a_page_that_is_not_for_a_role_says_so_in_the_persons_language(
    own_shop: Shop,
) -> None:
    async with come_in(own_shop, "ana", "viewer") as ana:
        refused = await ana.get("/console/payments", headers={"accept-language": "pt-BR"})
        assert refused.status_code == 403
        assert "Seu papel não inclui isto." in refused.text
        assert "scope" not in refused.text.partition('class="calls"')[0]


async def test_a_viewer_is_refused_whatever_they_send_by_hand(own_shop: Shop) -> None:
    async with come_in(own_shop, "ana", "viewer") as browser:
        for address, sent in (
            ("/console/payments/order-1/label", {"label": "fraud"}),
            ("/console/rules/gate/active", {"version": "1"}),
            ("/console/rules/gate/shadow", {"version": "1"}),
            ("/console/lists", {"name": "new", "type": "string"}),
            ("/console/lists/blocked/entries", {"values": "d-1"}),
            ("/console/settings/users", {"name": "ana", "role": "admin"}),
            ("/console/settings/users/ana/link", {}),
        ):
            assert await status(browser, address, **sent) == 403, address
        assert (await browser.get("/console/payments")).status_code == 403


async def test_the_audit_names_the_user_and_who_let_them_in(own_shop: Shop) -> None:
    async with come_in(own_shop, "ana@shop.example", "analyst") as browser:
        assert await status(browser, "/console/lists", name="new", type="string") == 303
    audit = (await own_shop.service.client.get("/v1/audit")).json()["audit"]
    done = [(each["action"], each["subject"], each["by"]) for each in audit[:4]]
    key = own_shop.service.client.headers["authorization"].split()[1][:13]
    assert done == [
        ("list_made", "list new", "ana@shop.example"),
        ("session_started", "session of ana@shop.example", "ana@shop.example"),
        ("user_link_made", "user ana@shop.example", key),
        ("user_set", "user ana@shop.example", key),
    ]


async def test_another_role_holds_at_once_and_a_removed_user_is_out_at_once(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    async with come_in(own_shop, "ana", "analyst") as browser:
        assert (await browser.get("/console/payments")).status_code == 200
        await api.put("/v1/users/ana", json={"user": {"role": "viewer"}})
        assert (await browser.get("/console/payments")).status_code == 403
        await api.delete("/v1/users/ana")
        assert (await browser.get("/console")).status_code == 303


async def test_a_link_of_a_user_who_was_removed_signs_nobody_in(own_shop: Shop) -> None:
    api = own_shop.service.client
    await api.put("/v1/users/ana", json={"user": {"role": "lead"}})
    code = (await api.post("/v1/users/ana/links")).json()["link"]["code"]
    await api.delete("/v1/users/ana")
    refused = await api.post("/v1/sessions", json={"session": {"code": code}})
    assert refused.status_code == 401


async def test_an_administrator_lets_people_in_and_out_on_the_page(own_shop: Shop) -> None:
    async with come_in(own_shop, "root", "admin") as browser:
        users = "/console/settings/users"
        assert await status(browser, users, name="rui@shop.example", role="lead") == 303
        shown = (await browser.get(users)).text
        assert "rui@shop.example" in shown
        linked = await browser.post(f"{users}/rui%40shop.example/link")
        link = re.search(
            r'<code id="link">(http://test/console/sign-in\?code=[\w-]+)<', linked.text
        )
        assert link is not None
        code = link[1].partition("code=")[2]
        assert code not in linked.text.partition('class="calls"')[2]
        entered = await browser.post("/console/sign-in", data={"code": code})
        assert entered.status_code == 303
        assert await status(browser, f"{users}/rui%40shop.example/remove") == 303
        assert "rui@shop.example" not in (await browser.get(users)).text


async def test_a_stream_goes_on_for_as_long_as_its_user_may_see_it(own_shop: Shop) -> None:
    user = await session_of(own_shop.service, "ana", "analyst")
    api, loop = own_shop.service.client, get_running_loop()
    begun = loop.time()
    await api.get("/v1/decisions/stream?seconds=1", headers=user)
    assert loop.time() - begun >= 1
    whole = create_task(api.get("/v1/decisions/stream", headers=user))
    await api.delete("/v1/users/ana")
    await whole


async def test_an_administrator_makes_a_key_whose_secret_is_shown_once_and_revokes_it(
    own_shop: Shop,
) -> None:
    async with come_in(own_shop, "root", "admin") as browser:
        wanted = {"name": "till", "scope": "payments:write", "account": "live", "days": "90"}
        made = await browser.post(KEYS_PAGE, data=wanted)
        secret = re.search(r'<code id="secret">(toll_[\w-]+)<', made.text)
        assert secret is not None, made.text
        assert secret[1] not in made.text.partition('class="calls"')[2]
        shown = (await browser.get(KEYS_PAGE)).text
        assert secret[1] not in shown
        assert f"{secret[1][:13]}…" in shown
        async with own_shop.service.client_with(secret[1]) as till:
            assert (await till.post("/v1/payments", json=payment(id="by-till"))).status_code == 201
            assert (await till.get("/v1/keys")).status_code == 403
            gone = await browser.post(f"{KEYS_PAGE}/{secret[1][:13]}/revoke")
            assert gone.status_code == 303
            assert (await till.post("/v1/payments", json=payment(id="late"))).status_code == 401
        assert secret[1][:13] not in (await browser.get(KEYS_PAGE)).text


async def test_a_key_that_a_user_makes_is_theirs_to_answer_for_and_of_known_scopes(
    own_shop: Shop,
) -> None:
    async with come_in(own_shop, "root", "admin") as browser:
        for account in ("live", "test"):
            await browser.post(KEYS_PAGE, data={"scope": "rules", "account": account})
    api = own_shop.service.client
    known = (await api.get("/v1/keys")).json()["keys"]
    made = {each["test"]: each for each in known if each["created_by"] == "root"}
    assert (made[False]["owner"], made[True]["owner"]) == ("root", None)
    assert made[True]["id"].startswith("toll_test_")
    for wrong in ({"scopes": ["all"]}, {"scopes": []}, {"scopes": ["rules"], "owner": "nobody"}):
        assert (await api.post("/v1/keys", json={"key": wrong})).status_code == 422
    another = {"scopes": ["rules"], "owner": "root"}
    assert (await api.post("/v1/keys", json={"key": another})).status_code == 403
    over = {"scopes": ["rules"], "expires_at": "2020-01-01T00:00:00Z"}
    assert (await api.post("/v1/keys", json={"key": over})).status_code == 422
    assert (await api.delete("/v1/keys/toll_none")).status_code == 404


async def session_of(service: Service, name: str, role: str) -> dict[str, str]:
    """The head of a request that the user makes, signed in by a link."""
    await service.client.put(f"/v1/users/{name}", json={"user": {"role": role}})
    code = (await service.client.post(f"/v1/users/{name}/links")).json()["link"]["code"]
    sent = {"session": {"code": code}}
    token = (await service.client.post("/v1/sessions", json=sent)).json()["session"]["token"]
    return {"authorization": f"Bearer {token}"}


async def who_asks(service: Service, headers: dict[str, str]) -> int:
    return (await service.client.get("/v1/session", headers=headers)).status_code


async def test_users_and_their_sessions_are_there_after_a_start(tmp_path: Path) -> None:
    async with open_service(tmp_path / "data") as service:
        ana = await session_of(service, "ana", "lead")
        rui = await session_of(service, "rui", "analyst")
        eva = await session_of(service, "eva", "viewer")
        by_key = {"session": {"key": await service.key("shop", "rules:read")}}
        token = (await service.client.post("/v1/sessions", json=by_key)).json()["session"]["token"]
        await service.client.delete("/v1/session", headers=eva)
        await service.client.delete("/v1/users/rui")
    async with open_service(tmp_path / "data") as service:
        known = (await service.client.get("/v1/users")).json()["users"]
        assert [(each["name"], each["role"]) for each in known] == [
            ("ana", "lead"),
            ("eva", "viewer"),
        ]
        assert await who_asks(service, ana) == 200
        assert await who_asks(service, {"authorization": f"Bearer {token}"}) == 200
        assert await who_asks(service, rui) == await who_asks(service, eva) == 401
        await service.client.put("/v1/users/rui", json={"user": {"role": "analyst"}})
        assert await who_asks(service, rui) == 401
        began = service.engine.clock()
        service.engine.clock = lambda: began + LONGEST_IDLE
        assert await who_asks(service, {"authorization": f"Bearer {token}"}) == 401


async def test_whoever_looks_after_a_journal_that_cannot_be_written_gets_in(
    own_shop: Shop,
) -> None:
    engine = own_shop.service.engine
    await own_shop.service.client.put("/v1/users/ana", json={"user": {"role": "lead"}})
    code = (await own_shop.service.client.post("/v1/users/ana/links")).json()["link"]["code"]
    await engine.journal.close()
    sent = {"session": {"code": code}}
    started = await own_shop.service.client.post("/v1/sessions", json=sent)
    headers = {"authorization": f"Bearer {started.json()['session']['token']}"}
    assert await who_asks(own_shop.service, headers) == 200
    await own_shop.service.client.delete("/v1/session", headers=headers)
    assert await who_asks(own_shop.service, headers) == 401


async def test_a_session_says_whose_it_is_and_what_they_are(own_shop: Shop) -> None:
    api = own_shop.service.client
    await api.put("/v1/users/ana", json={"user": {"role": "auditor"}})
    code = (await api.post("/v1/users/ana/links")).json()["link"]["code"]
    token = (await api.post("/v1/sessions", json={"session": {"code": code}})).json()["session"]
    headers = {"authorization": f"Bearer {token['token']}"}
    session = (await api.get("/v1/session", headers=headers)).json()["session"]
    assert (session["owner"], session["role"]) == ("ana", "auditor")
    assert "audit:read" in session["scopes"]
