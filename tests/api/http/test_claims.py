"""Payments to judge are given to one person at a time, for a quarter of an hour."""

from __future__ import annotations

from asyncio import gather

import httpx
import pytest

from tollkeeper.engine.registry import claims
from tollkeeper.tests.api.http.service import NOW, Service, payment

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def claimed(client: httpx.AsyncClient, limit: int = 4) -> list[str]:
    answer = await client.post("/v1/claims", params={"label": "none", "limit": limit})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["payments"]]


async def reviewers(service: Service, count: int) -> list[httpx.AsyncClient]:
    for number in range(10):
        await service.client.post("/v1/payments", json=payment(id=f"p-{number}"))
    scopes = ("personal:read", "labels:write", "payments:read")
    return [service.client_with(await service.key("shop", *scopes)) for _ in range(count)]


async def test_no_two_reviewers_get_one_payment_even_at_once(service: Service) -> None:
    people = await reviewers(service, 3)
    found = await gather(*map(claimed, people))
    given = [each for one in found for each in one]
    assert len(given) == len(set(given)) == 10
    assert [len(one) for one in found].count(4) == 2


async def test_everybody_reads_their_own_claims_until_these_end(service: Service) -> None:
    ana, rui = await reviewers(service, 2)
    taken = await claimed(ana)
    assert await claimed(rui, 1) not in taken
    for wanted in (taken, []):
        held = (await ana.get("/v1/claims")).json()["claims"]
        assert [each["payment"] for each in held] == wanted
        service.engine.clock = lambda: NOW + claims.CLAIM_LASTS


async def test_the_oldest_are_given_first_to_who_asks_for_them(service: Service) -> None:
    (ana,) = await reviewers(service, 1)
    asked = {"label": "none", "limit": 4, "sort": "oldest"}
    answer = await ana.post("/v1/claims", params=asked)
    assert [each["id"] for each in answer.json()["payments"]] == ["p-0", "p-1", "p-2", "p-3"]
    wrong = await ana.post("/v1/claims", params={"sort": "cheapest"})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "sort"


async def test_the_dearest_are_given_first_in_one_currency(service: Service) -> None:
    (ana,) = await reviewers(service, 1)
    for number, amount in enumerate((7, 700, 70, 700, 7000)):
        currency = "JPY" if amount == 7000 else "BRL"
        body = payment(id=f"dear-{number}", amount=amount, currency=currency)
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
    asked = {"sort": "dearest", "q": "currency:BRL id:dear-*"}
    answer = await ana.post("/v1/claims", params=asked)
    assert [each["id"] for each in answer.json()["payments"]] == [
        "dear-1",
        "dear-3",
        "dear-2",
        "dear-0",
    ]
    for mixed in ("label:none", "currency:BRL currency:JPY"):
        wrong = await ana.post("/v1/claims", params={"sort": "dearest", "q": mixed})
        assert wrong.status_code == 422
        assert wrong.json()["errors"][0]["field"] == "currency"


async def test_what_is_ones_own_is_given_again_until_it_is_judged(service: Service) -> None:
    ana, rui = await reviewers(service, 2)
    first = await claimed(ana)
    assert await claimed(ana) == first
    label = {"label": "fraud"}
    assert (await ana.put(f"/v1/payments/{first[0]}/labels/review", json=label)).status_code == 200
    again = await claimed(ana)
    assert first[0] not in again
    assert not {*again} & {*await claimed(rui)}


async def test_a_claim_is_over_after_a_quarter_of_an_hour(service: Service) -> None:
    ana, rui = await reviewers(service, 2)
    assert len(await claimed(ana, 10)) == 10
    assert await claimed(rui) == []
    service.engine.clock = lambda: NOW + claims.CLAIM_LASTS
    assert len(await claimed(rui)) == 4


def test_claims_beyond_what_is_held_make_the_oldest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MAX_CLAIMS", 2)
    held = claims.Claims()
    for id_ in ("a", "b", "c"):
        assert held.take(1, id_, "ana", NOW)
    assert held.take(1, "a", "rui", NOW)
    assert held.take(1, "c", "rui", NOW) is None
    assert held.take(2, "c", "rui", NOW)
