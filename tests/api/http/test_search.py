"""Payments found by anything, over HTTP."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from tollkeeper.api.console.client import PublicClient, RefusalError
from tollkeeper.api.console.turns import Turns
from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.limits import MOST_STREAMS
from tollkeeper.engine.folder_key import NameUse, Spot
from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  condition large "Large" when amount > 100.00 then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def furnish(service: Service) -> None:
    """Five payments: three of Ana's on one device, two of them denied, and two guests'."""
    stored = await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201
    ana = {"id": "u-ana", "email": "Ana@Shop.example"}
    for number, amount in enumerate((10, 200, 300)):
        await create(service, f"order-{number}", amount=amount, user=ana)
    guest = {"id": "d-2", "provider": "basic"}
    for number in (1, 2):
        device = {"ip_address": f"198.51.100.{number}", "fingerprint": guest}
        await create(service, f"guest {number}/7", amount=5, user=None, device=device)
    await service.client.patch("/v1/payments/order-0", json={"payment": {"status": "failed"}})


@pytest.fixture
async def shop(service: Service) -> Service:
    await furnish(service)
    return service


@pytest.fixture(scope="module")
async def shared_shop(shared_service: Service) -> Service:
    await furnish(shared_service)
    return shared_service


async def create(service: Service, id_: str, **changed: Any) -> None:
    if changed.get("user", 0) is None:
        changed["user"] = {}
    body = payment(id=id_, **({"analyze": ASKED} | changed))
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text


async def ids(service: Service, **query: Any) -> list[str]:
    answer = await service.client.get("/v1/payments", params=query)
    assert answer.status_code == 200, answer.text
    count = await service.client.get("/v1/payments/count", params=query)
    found = [each["id"] for each in answer.json()["payments"]]
    assert count.json() == {"count": len(found), "lag_ms": 0}
    return found


ANAS = ["order-2", "order-1", "order-0"]
GUESTS = ["guest 2/7", "guest 1/7"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, GUESTS + ANAS),
        ({"action": "deny"}, ANAS[:2]),
        ({"rule": "gate", "condition": "large", "version": "1"}, ANAS[:2]),
        ({"condition": "none"}, [*GUESTS, "order-0"]),
        ({"status": "failed"}, ["order-0"]),
        ({"user": "u-ana", "action": "deny"}, ANAS[:2]),
        ({"email": "ana@shop.EXAMPLE"}, ANAS),
        ({"device": "d-2"}, GUESTS),
        ({"ip": "198.51.100.1"}, GUESTS[1:]),
        ({"ip": "198.51.100.0/24"}, GUESTS),
        ({"bin": "411111", "device": "d-1"}, ANAS),
        ({"card": "41111111-1111", "status": "failed"}, ["order-0"]),
        ({"id": "order-*"}, ANAS),
        ({"id": "guest 1/7"}, GUESTS[1:]),
        ({"id": ["order-1", "guest 1/7"]}, ["guest 1/7", "order-1"]),
        ({"label": "none", "user": "u-ana"}, ANAS),
        ({"label": "fraud"}, []),
        ({"since": "1h"}, GUESTS + ANAS),
        ({"until": "1h"}, []),
        ({"score_from": "0", "score_to": "1"}, GUESTS + ANAS),
        ({"q": 'action:deny user:u-ana id:"order-1"'}, ["order-1"]),
        ({"q": "device:d-1 device:d-2 since:2d", "action": ["allow", "challenge"]}, None),
        ({"merchant": "nobody"}, []),
    ],
)
async def test_payments_are_found_by(
    shared_shop: Service, query: dict[str, Any], expected: list[str] | None
) -> None:
    if expected is None:
        expected = [*GUESTS, "order-0"]
    assert await ids(shared_shop, **query) == expected


async def test_a_found_payment_is_shown_in_short_as_known_now(shop: Service) -> None:
    answer = await shop.client.get("/v1/payments?id=order-0")
    [found] = answer.json()["payments"]
    score = found["analyses"]["bot_behaviour"].pop("score")
    assert 0 <= score <= 1
    assert found == {
        "id": "order-0",
        "at": "2026-09-10T00:26:40Z",
        "type": "purchase",
        "status": "failed",
        "currency": "BRL",
        "amount": 10.0,
        "merchant": "m-1",
        "order": None,
        "user": {"id": "u-ana", "email": "Ana@Shop.example"},
        "card": {"network": "visa", "bin": "41111111", "last_four": "1111"},
        "device": "d-1",
        "ip": "203.0.113.7",
        "label": None,
        "analyses": {
            "bot_behaviour": {"action": found["analyses"]["bot_behaviour"]["action"]},
            "rule": {"name": "gate", "version": 1, "condition": None},
        },
        "held_out": False,
    }


async def test_pages_continue_where_they_ended(shop: Service) -> None:
    found, cursor = [], None
    while True:
        query = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        page = (await shop.client.get("/v1/payments", params=query)).json()
        found += [each["id"] for each in page["payments"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == GUESTS + ANAS


@pytest.mark.parametrize(
    ("query", "field", "type_"),
    [
        ("action=block", "action", "invalid_value"),
        ("since=yesterday", "since", "invalid_value"),
        ("score_from=2", "score_from", "invalid_value"),
        ("ip=198.51.0.0/16", "ip", "invalid_value"),
        ("bin=47", "bin", "invalid_value"),
        ("id=a*", "id", "invalid_value"),
        ("q=deny", "q", "invalid_format"),
        ("q=colour:red", "colour", "invalid_value"),
        ("user=", "user", "invalid_value"),
        ("limit=0", "limit", "out_of_range"),
        ("cursor=x", "cursor", "invalid_value"),
        ("since=1h&until=2h", "since", "out_of_range"),
        ("since=1h&until=1h", "since", "out_of_range"),
        ("q=since:1h until:2h", "since", "out_of_range"),
        ("since=1h&q=until:2026-01-31T12:00:00Z", "since", "out_of_range"),
        ("score_from=0.5&score_to=0.4", "score_from", "out_of_range"),
        ("q=score:0.5..0.4", "score_from", "out_of_range"),
    ],
)
async def test_a_wrong_parameter_is_named(
    shared_shop: Service, query: str, field: str, type_: str
) -> None:
    answer = await shared_shop.client.get(f"/v1/payments?{query}")
    assert answer.status_code == 422
    assert errors(answer) == [(field, type_)]


@pytest.mark.parametrize(
    "path", ["payments", "payments/count", "decisions/stream", "figures", "scores", "thresholds"]
)
async def test_a_time_that_ends_before_it_begins_is_refused_wherever_payments_are_meant(
    shared_shop: Service, path: str
) -> None:
    for query in ("since=1h&until=2h", "q=since:1h until:2h"):
        answer = await shared_shop.client.get(f"/v1/{path}?{query}")
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {
                "field": "since",
                "type": "out_of_range",
                "message": "`since` is not before `until`",
            }
        ]


async def test_what_a_payment_shares_with_others(shop: Service) -> None:
    answer = await shop.client.get("/v1/payments/order-1/related")
    assert answer.status_code == 200
    related = {each["by"]: each for each in answer.json()["related"]}
    assert list(related) == ["card", "device", "ip", "network", "user", "email", "bin"]
    assert related["card"]["tally"]["payments"] == 5
    assert related["user"] == {
        "by": "user",
        "value": "u-ana",
        "first": "2026-09-10T00:26:40Z",
        "last": "2026-09-10T00:26:40Z",
        "tally": {
            "payments": 3,
            "actions": {"allow": 1, "challenge": 0, "deny": 2}
            if related["user"]["tally"]["actions"]["allow"]
            else {"allow": 0, "challenge": 1, "deny": 2},
            "statuses": {
                "initiated": 2,
                "succeeded": 0,
                "declined": 0,
                "failed": 1,
                "blocked": 0,
            },
            "labels": {"fraud": 0, "legitimate": 0, "unsure": 0},
        },
    }
    assert related["network"]["value"] == "203.0.113.0/24"


async def test_an_id_is_percent_encoded(shop: Service) -> None:
    answer = await shop.client.get("/v1/payments/guest%202%2F7/related?since=1h")
    assert answer.status_code == 200
    assert (await shop.client.get("/v1/payments/nobody/related")).status_code == 404


async def test_accounts_see_nothing_of_each_other(shop: Service) -> None:
    await shop.account("other")
    async with shop.client_with(await shop.key("other", "payments")) as other:
        assert (await other.get("/v1/payments")).json()["payments"] == []
        assert (await other.get("/v1/payments/count?user=u-ana")).json()["count"] == 0
        assert (await other.get("/v1/payments?id=order-1")).json()["payments"] == []
        assert (await other.get("/v1/payments/order-1/related")).status_code == 404


async def test_a_payment_called_count_is_read_percent_encoded(shop: Service) -> None:
    await create(shop, "count")
    assert (await shop.client.get("/v1/payments/%63ount")).json()["payment"]["id"] == "count"


async def test_an_erased_person_is_found_no_more(shop: Service) -> None:
    assert await ids(shop, user="u-ana") == ANAS
    erased = await shop.client.post("/v1/erasures", json={"user": "u-ana"})
    assert erased.status_code == 200, erased.text
    for query in ({"user": "u-ana"}, {"device": "d-1"}, {"email": "ana@shop.example"}):
        assert await ids(shop, **query) == []
    assert await ids(shop, id="order-*") == ANAS
    index = (shop.folder / "search.db").read_bytes()
    assert b"u-ana" not in index


def place(shop: Service, sequence: int) -> str:
    return shop.engine.folder_key.name_of(NameUse.CURSOR, 1, Spot(sequence))


def client_of_streams(shop: Service) -> PublicClient:
    """A client that sees each piece of a stream as it comes."""
    app = public_app(service_of(shop.engine, jobs=shop.jobs))
    key = shop.client.headers["authorization"].removeprefix("Bearer ")
    return PublicClient(app, key, None, Turns())


def streamed(text: str) -> list[str]:
    return re.findall(r'data: \{"id":"([^"]+)"', text)


async def test_decisions_are_streamed_as_they_are_made_and_resumed(shop: Service) -> None:
    path, begin = "/v1/decisions/stream", place(shop, shop.engine.journal.last_sequence())
    stream = client_of_streams(shop).follow(path, {"user": "u-ana"}, begin)
    async with aclosing(stream) as pieces:
        assert (await anext(pieces)).startswith(b"retry: ")
        await create(shop, "another's", user={"id": "u-bob"})
        await create(shop, "new", user={"id": "u-ana"})
        piece = (await anext(pieces)).decode()
    assert streamed(piece) == ["new"]
    (last,) = re.findall(r"^id: (.*)$", piece, re.MULTILINE)
    await create(shop, "newer", user={"id": "u-ana"})
    for after, expected in ((begin, ["new", "newer"]), (last, ["newer"])):
        query = f"{path}?seconds=1&user=u-ana"
        answer = await shop.client.get(query, headers={"last-event-id": after})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert streamed(answer.text) == expected


async def test_the_stream_goes_on_from_the_place_of_a_search(shop: Service) -> None:
    found = (await shop.client.get("/v1/payments?user=u-ana&limit=1")).json()
    await create(shop, "after", user={"id": "u-ana"})
    path, place = "/v1/decisions/stream?seconds=1&user=u-ana", found["place"]
    answer = await shop.client.get(path, headers={"last-event-id": place})
    assert streamed(answer.text) == ["after"]


async def test_an_account_follows_so_many_streams_at_once_and_one_more_when_one_ends(
    shop: Service,
) -> None:
    client, path = client_of_streams(shop), "/v1/decisions/stream"
    async with AsyncExitStack() as open_:
        for _ in range(MOST_STREAMS):
            ended = await open_.enter_async_context(aclosing(client.follow(path)))
            await anext(ended)
        with pytest.raises(RefusalError) as refused:
            await anext(client.follow(path))
        assert refused.value.status == 429
        assert f"{MOST_STREAMS} streams at once" in str(refused.value.errors)
        await ended.aclose()
        await anext(await open_.enter_async_context(aclosing(client.follow(path))))


async def test_payments_that_came_together_are_streamed_in_one_piece(shop: Service) -> None:
    stream = client_of_streams(shop).follow("/v1/decisions/stream", {}, place(shop, 0))
    async with aclosing(stream) as pieces:
        assert (await anext(pieces)).startswith(b"retry: ")
        assert (await anext(pieces)).count(b"event: payment") == 5


async def test_a_stream_says_what_it_skipped(shop: Service) -> None:
    path = "/v1/decisions/stream?seconds=1&most=2"
    answer = await shop.client.get(path, headers={"last-event-id": place(shop, 0)})
    assert 'event: gap\ndata: {"skipped":3}' in answer.text
    assert answer.text.count("event: payment") == 2
