"""What a decision rests on: the records behind a count, shadows, the scorecard that ships."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.engine.shadows.record import drain
from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  condition many when count(payments by device.fingerprint.id over 1h where amount >= 5.00) > 3 then deny
  condition spent when sum(earlier payments.amount by user.id, currency over 1h) > 5000.00 then deny
  condition old when age(payments by user.id) > 5m then challenge
"""


@pytest.fixture
async def shop(service: Service) -> Service:
    """Fifteen payments of one user and device, every third too small to be counted."""
    stored = await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201
    stored = await service.client.post(
        "/v1/rules/gate/versions", content=RULE.replace("> 3", "> 5")
    )
    assert (
        await service.client.put("/v1/rules/gate/shadow", json={"version": 2})
    ).status_code == 200
    for number in range(15):
        amount = 1 if number % 3 == 0 else 10
        asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
        body = payment(id=f"p-{number}", amount=amount, analyze=asked)
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
    return service


async def records(service: Service, id_: str, **query: Any) -> list[dict[str, Any]]:
    """All pages."""
    found, cursor = [], None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        path = f"/v1/payments/{id_}/explanation/records"
        answer = await service.client.get(path, params={**query, **more})
        assert answer.status_code == 200, answer.text
        found += answer.json()["records"]
        cursor = answer.json()["cursor"]
        if cursor is None:
            return found


COUNTED = ["p-14", "p-13", "p-11", "p-10", "p-8", "p-7", "p-5", "p-4", "p-2", "p-1"]


@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_all_records_behind_a_count_are_listed_page_by_page(
    shop: Service, limit: int
) -> None:
    found = await records(shop, "p-14", of="rule", index=0, limit=limit)
    assert [each["id"] for each in found] == COUNTED
    explained = (await shop.client.get("/v1/payments/p-14/explanation")).json()["explanation"]
    assert explained["rule"]["histories"][0]["value"] == "10"


async def test_only_what_was_there_then_is_listed_and_earlier_ones_alone_where_it_says_so(
    shop: Service,
) -> None:
    assert [each["id"] for each in await records(shop, "p-4", index=0)] == ["p-4", "p-2", "p-1"]
    found = await records(shop, "p-4", index=1)
    assert [(each["id"], each["value"]) for each in found] == [
        ("p-3", "1.00"),
        ("p-2", "10.00"),
        ("p-1", "10.00"),
        ("p-0", "1.00"),
    ]
    assert {each["id"] for each in await records(shop, "p-4", index=2)} <= {
        "p-0",
        "p-1",
        "p-2",
        "p-3",
    }
    assert await records(shop, "p-0", index=2) == []


async def test_what_was_not_read_is_not_found(shop: Service) -> None:
    for path, field in (
        ("p-4/explanation/records?index=3", "index"),
        ("p-99/explanation/records", "id"),
    ):
        answer = await shop.client.get(f"/v1/payments/{path}")
        assert (answer.status_code, errors(answer)) == (404, [(field, "not_found")])


async def test_each_shadow_of_a_payment_says_what_it_would_have_decided(shop: Service) -> None:
    await drain(shop.engine)
    [shadow] = (await shop.client.get("/v1/payments/p-5/shadows")).json()["shadows"]
    assert (shadow["kind"], shadow["name"], shadow["version"]) == ("rule", "gate", 2)
    assert (shadow["decided"]["condition"], shadow["would"]["condition"]) == ("many", None)
    assert 0 <= shadow["would"]["score"] <= 1
    assert (await shop.client.get("/v1/payments/p-99/shadows")).json() == {"shadows": []}


async def test_the_shipped_scorecard_is_version_0(service: Service) -> None:
    answer = await service.client.get("/v1/scorecards/bot_behaviour/versions/0")
    assert answer.status_code == 200
    assert "scorecard bot_behaviour" in answer.json()["scorecard"]["text"]
    assert (await service.client.get("/v1/rules/gate/versions/0")).status_code == 404


async def test_the_shipped_scorecard_is_there_until_an_own_one_decides(service: Service) -> None:
    async def listed() -> list[tuple[str, int, int | None]]:
        found = (await service.client.get("/v1/scorecards")).json()["scorecards"]
        return [(each["name"], each["newest"], each["active"]) for each in found]

    path = "/v1/scorecards/bot_behaviour"
    assert await listed() == [("bot_behaviour", 0, 0)]
    shipped = (await service.client.get(path)).json()["scorecard"]
    assert [each["version"] for each in shipped["versions"]] == [0]
    own = "scorecard bot_behaviour\n  baseline 0.02\n"
    stored = await service.client.post(f"{path}/versions?publish=true", content=own)
    assert stored.status_code == 201, stored.text
    assert await listed() == [("bot_behaviour", 1, 1)]
    found = (await service.client.get(path)).json()["scorecard"]
    assert [each["version"] for each in found["versions"]] == [1, 0]
    await service.client.delete(f"{path}/active")
    assert await listed() == [("bot_behaviour", 1, 0)]
    assert (await service.client.get(path)).json()["scorecard"]["text"] == shipped["text"]
