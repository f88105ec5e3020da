"""Figures over HTTP: each a count that the search it belongs to gives too."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  condition large "Large" when amount > 100.00 then deny
  condition unheard when amount > 100000.00 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def furnish(service: Service) -> None:
    """Four payments by the rule, two of them denied, one of these labelled as fraud."""
    client = service.client
    stored = await client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201
    for number, amount in enumerate((10, 20.5, 200, 300.25)):
        body = payment(id=f"p-{number}", amount=amount, analyze=ASKED)
        assert (await client.post("/v1/payments", json=body)).status_code == 201
    said = {"label": "fraud"}
    await client.put("/v1/payments/p-3/labels/chargeback", json=said)


@pytest.fixture
async def shop(service: Service) -> Service:
    await furnish(service)
    return service


@pytest.fixture(scope="module")
async def shared_shop(shared_service: Service) -> Service:
    await furnish(shared_service)
    return shared_service


async def read(service: Service, path: str) -> Any:
    answer = await service.client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.json()["lag_ms"] == 0
    return answer.json()


async def test_a_day_is_counted_hour_by_hour(shop: Service) -> None:
    found = (await read(shop, "/v1/figures?every=hour&money=true&until=2026-09-10T01:00:00Z"))[
        "figures"
    ]
    assert len(found) == 24
    assert [each["tally"]["payments"] for each in found] == [0] * 23 + [4]
    assert found[-1]["start"] == "2026-09-10T00:00:00Z"
    assert found[-1]["money"] == {"BRL": "530.75"}
    assert found[-1]["tally"]["actions"]["deny"] == 2


async def test_figures_are_split_by_a_dimension_and_narrowed_by_a_filter(shop: Service) -> None:
    path = "/v1/figures?by=condition&until=2026-09-10T01:00:00Z"
    found = (await read(shop, path))["figures"]
    assert {each["by"]: each["tally"]["payments"] for each in found} == {"large": 2, "none": 2}
    found = (await read(shop, f"{path}&q=action:deny+label:fraud"))["figures"]
    assert [(each["by"], each["tally"]["payments"]) for each in found] == [("large", 1)]


async def test_figures_are_compared_with_those_of_a_span_before(shop: Service) -> None:
    found = await read(shop, "/v1/figures?since=1h&until=2026-09-10T01:00:00Z&compare=7d")
    assert [each["tally"]["payments"] for each in found["figures"]] == [4]
    assert [each["tally"]["payments"] for each in found["compared"]] == [0]
    assert found["compared"][0]["end"] == "2026-09-03T01:00:00Z"


@pytest.mark.parametrize("moment", ["999999w", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_any_moment_has_figures_or_is_refused_in_every_time_zone(
    shop: Service, moment: str
) -> None:
    paths = ["figures?by=action", "figures?every=day", "figures?every=month", "scores/drift?"]
    paths += ["figures/movers?", "rules/gate/performance?", "payments?", "labels?", "alerts?"]
    for zone in ("America/Sao_Paulo", "Pacific/Kiritimati"):
        changed = {"account": {"time_zone": zone}}
        assert (await shop.client.put("/v1/account", json=changed)).status_code == 200
        for path in paths:
            for span in (f"since={moment}", f"until={moment}", f"since=1h&compare={moment}"):
                answer = await shop.client.get(f"/v1/{path}&{span}".replace("?&", "?"))
                assert answer.status_code in (200, 422), (path, span)


async def test_what_is_new_moves_first(shop: Service) -> None:
    found = await read(shop, "/v1/figures/movers?until=2026-09-10T01:00:00Z")
    movers = {each["by"]: each for each in found["movers"]}
    assert movers["bin"]["value"] == "41111111"
    assert (movers["bin"]["payments"], movers["bin"]["usual"]) == (4, 0.0)
    assert movers["condition"]["value"] == "large"
    only = await read(shop, "/v1/figures/movers?by=device&until=2026-09-10T01:00:00Z")
    assert [each["value"] for each in only["movers"]] == ["d-1"]


async def test_scores_have_101_exact_buckets(shop: Service) -> None:
    found = (await read(shop, "/v1/scores?rule=gate"))["scores"]
    assert [each["score"] for each in found] == [number / 100 for number in range(101)]
    assert sum(each["payments"] for each in found) == 4
    assert sum(each["by"].get("fraud", 0) for each in found) == 1


async def test_how_a_rule_performs(shop: Service) -> None:
    path = "/v1/rules/gate/performance?until=2026-09-10T01:00:00Z"
    found = (await read(shop, path))["conditions"]
    by = {each["condition"]: each for each in found}
    large = by["large"]
    assert large["tally"]["payments"] == 2
    assert large["money"] == {"BRL": "500.25"}
    assert (large["precision"]["labelled"], large["precision"]["share"]) == (1, 1.0)
    assert 0.2 < large["precision"]["low"] < 0.21
    assert large["immature"] == 1.0
    denied = {"of": 2, "succeeded": 0, "denied": ["p-3", "p-2"], "followed": []}
    assert large["came_back"] == denied
    assert sum(large["trend"]) == 2
    assert by["unheard"]["tally"]["payments"] == 0
    assert by["unheard"]["last"] is None
    assert by[None]["tally"]["payments"] == 2
    answer = await shop.client.get("/v1/rules/nothing/performance")
    assert answer.status_code == 404


async def test_conditions_that_held_beside_the_one_that_decided_are_counted(
    service: Service,
) -> None:
    rule = "rule gate\n" + "".join(
        f"  condition {name} when amount > {least} then deny\n"
        for name, least in (("large", "200.00"), ("middle", "100.00"), ("huge", "400.00"))
    )
    client = service.client
    stored = await client.post("/v1/rules/gate/versions?publish=true", content=rule)
    assert stored.status_code == 201
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    for number, amount in enumerate((150, 300, 300, 500)):
        body = payment(id=f"p-{number}", amount=amount, analyze=asked)
        assert (await client.post("/v1/payments", json=body)).status_code == 201
    address = "/v1/rules/gate/performance?until=2026-09-10T01:00:00Z"
    unasked = (await read(service, address))["conditions"]
    assert {each["also_met"]["of"] for each in unasked} == {0}
    found = await read(service, f"{address}&overlap=true")
    by = {each["condition"]: each["also_met"] for each in found["conditions"]}
    assert by == {
        "large": {"of": 3, "conditions": {"middle": 3, "huge": 1}},
        "middle": {"of": 1, "conditions": {}},
        "huge": {"of": 0, "conditions": {}},
    }


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("figures?every=minute&since=60d", "every"),
        ("figures?since=1h&until=2h", "since"),
        ("figures?by=card", "by"),
        ("figures?compare=soon", "compare"),
        ("figures/movers?by=order", "by"),
        ("scores?by=colour", "by"),
        ("rules/gate/performance?since=soon", "since"),
    ],
)
async def test_a_wrong_parameter_is_named(shared_shop: Service, path: str, field: str) -> None:
    answer = await shared_shop.client.get(f"/v1/{path}")
    assert answer.status_code == 422
    assert errors(answer)[0][0] == field
