"""Thresholds are weighed from labels, over HTTP and by command."""

from __future__ import annotations

import pytest

from tollkeeper.tests.api.http.service import NOW, Service, errors, payment
from tollkeeper.tests.service.process import toll

pytestmark = pytest.mark.anyio

SCORECARD = """scorecard bot_behaviour
  baseline 0.5
  signal sure adds 3.0 when user.id == "bot"
  signal person adds -3.0 when user.id == "person"
"""
COSTS = "chargeback=20&margin=0.2&challenge_lost=0.5"


@pytest.fixture
async def shop(service: Service) -> Service:
    """Three frauds of 100.00, one of them scored as people are, and two people of 50.00, one of
    them scored in the middle; one more without a label."""
    stored = await service.client.post(
        "/v1/scorecards/bot_behaviour/versions?publish=true", content=SCORECARD
    )
    assert stored.status_code == 201
    for id_, user, amount, label in (
        ("f-1", "bot", 100, "fraud"),
        ("f-2", "bot", 100, "fraud"),
        ("f-3", "person", 100, "fraud"),
        ("p-1", "person", 50, "legitimate"),
        ("p-2", "anyone", 50, "legitimate"),
        ("u-1", "bot", 50, None),
    ):
        body = payment(id=id_, amount=amount, user={"id": user})
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
        if label:
            path = f"/v1/payments/{id_}/labels/review"
            assert (await service.client.put(path, json={"label": label})).status_code == 200
    return service


async def test_a_pair_of_thresholds_is_weighed_with_its_cost(shop: Service) -> None:
    answer = await shop.client.get(f"/v1/thresholds?challenge=0.4&deny=0.9&{COSTS}")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [
        (b["score"], b["people"], b["frauds"], b["unripe"])
        for b in found["bands"]
        if b["people"] or b["frauds"]
    ] == [
        (0.05, 1, 1, 0),
        (0.5, 1, 0, 0),
        (0.95, 0, 2, 1),
    ]
    asked = found["asked"]
    assert asked["people"] == {
        "payments": 2,
        "challenged": 1,
        "denied": 0,
        "challenged_share": 0.5,
        "denied_share": 0.0,
    }
    assert (asked["frauds"]["denied"], asked["precision"]) == (2, 1.0)
    # The fraud that passes costs 120.00; the person who is challenged half of 10.00.
    assert asked["cost"] == {"BRL": "125.00"}
    assert found["now"]["thresholds"] == {"challenge": 0.5, "deny": 0.85}
    assert found["currency"] == "BRL"
    assert found["cheapest"]["cost"] == {"BRL": "10.00"}


async def test_costs_that_are_left_out_are_the_accounts_own(shop: Service) -> None:
    costs = {"chargeback": 20, "margin": 0.2, "challenge_lost": 0.5}
    changed = await shop.client.put("/v1/account", json={"account": {"costs": costs}})
    assert changed.json()["account"]["costs"] == costs
    asked = "/v1/thresholds?challenge=0.4&deny=0.9"
    assert (await shop.client.get(asked)).json()["asked"]["cost"] == {"BRL": "125.00"}
    dearer = await shop.client.get(f"{asked}&chargeback=30")
    assert dearer.json()["asked"]["cost"] == {"BRL": "135.00"}


async def test_payments_without_a_label_count_as_people_once_they_are_old(shop: Service) -> None:
    shop.engine.clock = lambda: NOW + 46 * 86_400_000_000
    bands = (await shop.client.get("/v1/thresholds")).json()["bands"]
    assert [(b["people"], b["unripe"]) for b in bands if b["score"] == 0.95] == [(1, 0)]


async def test_without_labels_nothing_is_cheapest(service: Service) -> None:
    found = (await service.client.get("/v1/thresholds")).json()
    assert (found["cheapest"], found["currency"]) == (None, None)
    assert found["now"]["precision"] is None


@pytest.mark.parametrize(
    "query",
    ["challenge=2", "deny=x", "margin=-1", "chargeback=nan", "chargeback=1e9999999", "deny=0.555"],
)
async def test_a_wrong_number_is_named(shared_service: Service, query: str) -> None:
    answer = await shared_service.client.get(f"/v1/thresholds?{query}")
    assert answer.status_code == 422
    assert errors(answer) == [(query.split("=")[0], "invalid_value")]


async def test_the_command_draws_the_same(shop: Service) -> None:
    # The command's clock is the machine's, by which a payment without a label may be old.
    path = "/v1/payments/u-1/labels/review"
    assert (await shop.client.put(path, json={"label": "unsure"})).status_code == 200
    await shop.engine.journal.flush()
    drawn = toll(
        shop.folder,
        *("thresholds", "--account", "shop", "--since", "2026-01-01T00:00:00Z"),
        *("--challenge", "0.4", "--deny", "0.9"),
        *("--chargeback", "20", "--margin", "0.2", "--challenge-lost", "0.5"),
    )
    assert drawn.returncode == 0, drawn.stderr
    lines = drawn.stdout.splitlines()
    [asked] = [line for line in lines if line.startswith("asked")]
    assert asked.split() == [
        "asked",
        "0.40",
        "0.90",
        "50.0%",
        "0.0%",
        "0.0%",
        "66.7%",
        "100.0%",
        "125.00",
        "BRL",
    ]
    assert lines[-1] == "5 payments; 0 more have no label and are younger than 45 days"
