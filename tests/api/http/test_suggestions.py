"""Suggestions over HTTP: started, watched, read and ended, each account its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio


@pytest.fixture
async def shop(service: Service) -> Service:
    for number in range(6):
        body = payment(id=f"p-{number}", amount=10 + number)
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
    return service


async def finished(service: Service, **sent: Any) -> dict[str, Any]:
    answer = await service.client.post("/v1/suggestions", json=sent)
    assert answer.status_code == 202, answer.text
    id_ = answer.json()["suggestion"]["id"]
    while True:
        found: dict[str, Any] = (await service.client.get(f"/v1/suggestions/{id_}")).json()
        if found["suggestion"]["state"] not in ("waiting", "running"):
            return found["suggestion"]
        await asyncio.sleep(0.02)


async def test_the_labels_of_the_journal_are_learned_from(shop: Service) -> None:
    for id_, label in (("p-1", "fraud"), ("p-2", "fraud"), ("p-3", "unsure")):
        path = f"/v1/payments/{id_}/labels/chargeback"
        assert (await shop.client.put(path, json={"label": label})).status_code == 200
    found = await finished(shop, mature_days=0)
    suggestion = found["suggestion"]
    assert (found["state"], suggestion["payments"], suggestion["frauds"]) == ("done", 5, 2)
    assert suggestion["set_aside"] == {"unsure": 1}
    assert (suggestion["text"], suggestion["conditions"]) == ("", [])


async def test_without_any_fraud_it_says_that_there_is_nothing_to_learn(shop: Service) -> None:
    found = await finished(shop, mature_days=0)
    assert found["state"] == "failed"
    assert "no fraud among 6 payments" in found["reason"]
    young = await finished(shop)
    assert "no fraud among 0 payments" in young["reason"]


async def test_what_conditions_may_not_read_is_named(shop: Service) -> None:
    answer = await shop.client.post("/v1/suggestions", json={"without": ["shoe size"]})
    assert answer.status_code == 422
    assert [field for field, *_ in errors(answer)] == ["without"]


async def test_one_is_ended_and_forgotten(shop: Service) -> None:
    started = (await shop.client.post("/v1/suggestions", json={})).json()["suggestion"]
    ended = await shop.client.delete(f"/v1/suggestions/{started['id']}")
    assert ended.status_code == 200
    assert (await shop.client.get("/v1/suggestions")).json() == {"suggestions": []}
    assert (await shop.client.get(f"/v1/suggestions/{started['id']}")).status_code == 404
