"""Users who see some merchants alone: nothing of another merchant reaches them by any operation."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.api.console.test_users import session_of
from tollkeeper.tests.api.http.service import Service, open_service, payment

pytestmark = pytest.mark.anyio

ASKED = {"bot_behaviour": True}
MERCHANTS = ("m-1", "m-2", "m-3")
SEEN = ("m-1",)
PATIENT = Settings(key_work=100_000, account_work=100_000, account_changes=100_000)
WATCH = """event payment
  metric own = count(payments by merchant.id over 1h)
  metric all_sales = count(payments by currency over 1h)
  metric shared = count(payments by device.fingerprint.id over 1h)
  monitor busy "Many payments of one merchant" when own >= 3 by merchant.id
  monitor busy_device "… on one device" when own >= 2 by merchant.id, device.fingerprint.id
  monitor beside_all "… beside all" when own >= 2 and all_sales >= 5 by merchant.id
  monitor device "Many on one device" when shared >= 3 by device.fingerprint.id
  monitor whole "Many of all" when all_sales >= 3 by currency
"""
_members = st.sampled_from(
    [
        *(f"merchant:{merchant}" for merchant in MERCHANTS),
        *("action:deny", "action:allow", "label:fraud", "label:none", "status:initiated"),
        *("device:d-1", "card:41111111-1111", "email:ana@shop.example", "bin:41111111"),
        *("id:pay-*", "id:pay-4", "score:0..1", "score_from:0.3", "since:1d", "currency:EUR"),
    ]
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Market:
    """A service with payments of three merchants; `whole` sees all, `part` those of one."""

    service: Service
    whole: httpx.AsyncClient
    part: httpx.AsyncClient


@pytest.fixture(scope="module")
async def market(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Market]:
    async with open_service(tmp_path_factory.mktemp("market") / "data") as service:
        api = service.client
        watched = await api.post("/v1/event-types/payment/versions?publish=true", content=WATCH)
        assert watched.status_code == 201, watched.text
        for number in range(9):
            merchant = MERCHANTS[number % 3]
            device = {"ip_address": "198.51.100.7", "fingerprint": {"id": f"d-{number % 2}"}}
            device["fingerprint"]["provider"] = "basic"
            body = payment(id=f"pay-{number}", merchant={"id": merchant}, device=device)
            body["payment"]["analyze"] = ASKED
            assert (await api.post("/v1/payments", json=body)).status_code == 201
        said = {"label": "fraud", "reason": "told by phone"}
        for number in (3, 4):
            await api.put(f"/v1/payments/pay-{number}/labels/review", json=said)
        user = await session_of(service, "rui", "lead")
        limited = {"user": {"role": "lead", "merchants": [*SEEN]}}
        assert (await api.put("/v1/users/rui", json=limited)).status_code == 200
        whole_key = api.headers["authorization"].split()[1]
        async with (
            service.client_with(whole_key, PATIENT) as whole,
            service.client_with(user["authorization"].split()[1], PATIENT) as part,
        ):
            yield Market(service, whole, part)


def others_in(answer: httpx.Response) -> list[str]:
    """Ids of other merchants and of their payments."""
    return re.findall(r"m-[23]|pay-(?:1|2|4|5|7|8)(?!\d)", answer.text)


async def found(client: httpx.AsyncClient, query: str) -> list[tuple[str, str]]:
    answer = await client.get("/v1/payments", params={"q": query, "limit": "2"})
    pages = answer.json()["payments"]
    while cursor := answer.json()["cursor"]:
        sent = {"q": query, "limit": "2", "cursor": cursor}
        answer = await client.get("/v1/payments", params=sent)
        pages += answer.json()["payments"]
    return [(each["id"], each["merchant"]) for each in pages]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_members, max_size=4).map(" ".join))
async def test_whatever_is_searched_for_only_what_is_theirs_is_found_and_counted(
    market: Market, query: str
) -> None:
    own = [each for each in await found(market.whole, query) if each[1] in SEEN]
    assert await found(market.part, query) == own
    counted = await market.part.get("/v1/payments/count", params={"q": query})
    assert counted.json()["count"] == len(own)
    for path, more in (
        ("/v1/figures", {"since": "1d", "by": "merchant"}),
        ("/v1/scores", {"by": "merchant"}),
        ("/v1/thresholds", {}),
    ):
        answer = await market.part.get(path, params={"q": query, **more})
        if answer.status_code == 422:  # a span twice
            continue
        assert answer.status_code == 200, answer.text
        assert others_in(answer) == []
    scores = (await market.part.get("/v1/scores", params={"q": query, "by": "action"})).json()
    assert sum(each["payments"] for each in scores["scores"]) == len(own)


async def test_what_a_payment_shares_is_counted_among_theirs(market: Market) -> None:
    whole, part = (
        {each["by"]: each["tally"]["payments"] for each in answer.json()["related"]}
        for answer in [
            await client.get("/v1/payments/pay-0/related") for client in (market.whole, market.part)
        ]
    )
    assert (whole["ip"], part["ip"]) == (9, 3)
    assert (whole["device"], part["device"]) == (5, 2)


async def test_a_stream_tells_of_theirs_alone(market: Market) -> None:
    begun = await market.part.get("/v1/decisions/stream?seconds=1")
    place = re.search(r"id: (\S+)", begun.text)
    assert place is not None
    for number, merchant in ((10, "m-1"), (20, "m-2")):
        body = payment(id=f"new-{number}", merchant={"id": merchant})
        assert (await market.whole.post("/v1/payments", json=body)).status_code == 201
    headers = {"last-event-id": place[1]}
    told = await market.part.get("/v1/decisions/stream?seconds=1", headers=headers)
    assert re.findall(r'"id":"(new-\d+)"', told.text) == ["new-10"]


async def test_alerts_are_theirs_that_tell_of_their_merchants_and_of_no_other(
    market: Market,
) -> None:
    every = (await market.whole.get("/v1/alerts?limit=100")).json()["alerts"]
    monitors = {"busy", "busy_device", "beside_all", "device", "whole"}
    assert {each["monitor"] for each in every} == monitors
    own = (await market.part.get("/v1/alerts")).json()["alerts"]
    told = {(each["monitor"], *each["key"]) for each in own}
    assert told == {
        ("busy", "m-1"),
        ("busy_device", "m-1", "d-0"),
        ("busy_device", "m-1", "d-1"),
    }
    page = (await market.part.get("/v1/alerts?limit=1")).json()
    paged = page["alerts"]
    while page["cursor"]:
        sent = {"limit": "1", "cursor": page["cursor"]}
        page = (await market.part.get("/v1/alerts", params=sent)).json()
        paged += page["alerts"]
    assert paged == own
    mark = {"alert": {"state": "acknowledged", "note": "looking"}}
    theirs = {each["id"] for each in own}
    for alert in every:
        path = f"/v1/alerts/{alert['id']}"
        expected = 200 if alert["id"] in theirs else 404
        assert (await market.part.get(path)).status_code == expected
        assert (await market.part.put(path, json=mark)).status_code == expected


async def test_of_the_lists_they_read_those_that_the_account_shows_them(market: Market) -> None:
    for name in ("shown", "hidden"):
        await market.whole.put(f"/v1/lists/{name}", json={"type": "string"})
        entries = {"entries": [{"value": "d-1"}]}
        await market.whole.put(f"/v1/lists/{name}/entries", json=entries)
    assert (await market.part.get("/v1/lists")).json()["lists"] == []
    shown = {"account": {"merchant_lists": ["shown"]}}
    assert (await market.whole.put("/v1/account", json=shown)).status_code == 200
    assert [each["name"] for each in (await market.part.get("/v1/lists")).json()["lists"]] == [
        "shown"
    ]
    read = await market.part.get("/v1/lists/shown/entries")
    assert [each["value"] for each in read.json()["entries"]] == ["d-1"]
    unknown = await market.part.get("/v1/lists/nobodys/entries")
    for path in ("", "/entries"):
        hidden = await market.part.get(f"/v1/lists/hidden{path}")
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.text.replace("hidden", "nobodys") == unknown.text
    put = await market.part.put("/v1/lists/shown/entries", json={"entries": [{"value": "d-2"}]})
    assert put.status_code == 403


def _routes() -> list[Any]:
    return [each for each in ROUTES if each.opt["scope"] not in (None, "any")]


@pytest.mark.parametrize("route", _routes(), ids=lambda route: route.operation_id)
async def test_every_operation_is_refused_or_knows_no_payment_of_another_merchant(
    market: Market, route: Any
) -> None:
    (path,) = route.paths
    (method,) = route.http_methods
    body = {"note": {"text": "a"}, "label": "fraud", "reveal": {"field": "card"}}
    name = {"add_note": "note", "set_label": "label", "reveal_field": "reveal"}
    sent = {key: body[key] for key in [name.get(route.operation_id)] if key is not None}

    async def ask(id_: str) -> httpx.Response:
        address = re.sub(r"\{id:\w+\}", quote(id_), path)
        address = re.sub(r"\{source:\w+\}", "review", address)
        address = re.sub(r"\{\w+:\w+\}", "x", address)
        return await market.part.request(method, address, json=sent or None)

    if not route.opt["of_merchants"]:
        assert (await ask("pay-1")).status_code == 403
    elif "{id:" in path:
        others, unknown = await ask("pay-1"), await ask("nobodys")
        assert (others.status_code, others.text) == (unknown.status_code, unknown.text)
        assert others.status_code == 404
    else:
        assert others_in(await ask("")) == []


async def test_merchants_stay_with_another_role_and_go_with_an_empty_list(tmp_path: Any) -> None:
    async with open_service(tmp_path / "data") as service:
        headers = await session_of(service, "ana", "viewer")
        put = service.client.put
        await put("/v1/users/ana", json={"user": {"role": "viewer", "merchants": ["m-1"]}})
        changed = await put("/v1/users/ana", json={"user": {"role": "analyst"}})
        assert changed.json()["user"]["merchants"] == ["m-1"]
        who = (await service.client.get("/v1/session", headers=headers)).json()["session"]
        assert who["merchants"] == ["m-1"]
        assert who["scopes"] == ["labels:write", "lists:read", "payments:read", "personal:read"]
        lifted = {"user": {"role": "analyst", "merchants": []}}
        assert (await put("/v1/users/ana", json=lifted)).json()["user"]["merchants"] == []
        who = (await service.client.get("/v1/session", headers=headers)).json()["session"]
        assert "rules:read" in who["scopes"]
        for wrong in ([""], ["m" * 257], ["m"] * 101, ["\n"]):
            sent = {"user": {"role": "viewer", "merchants": wrong}}
            assert (await put("/v1/users/ana", json=sent)).status_code == 422
