"""Decisions listed, and explained, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.changes import VersionStored
from tollkeeper.engine.registry.programs import encode_program
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.tests.api.http.service import Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  list trusted: string
  let uses = count(payments by user.id over 1h)
  condition trusted when user.id in @trusted then allow
  condition busy "Many payments" when uses > 2 and amount > 100.00 then deny
  condition night when hour(timestamp) between 1 and 5 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def publish(service: Service, text: str = RULE) -> None:
    answer = await service.client.post("/v1/rules/gate/versions?publish=true", content=text)
    assert answer.status_code == 201, answer.text


async def create(service: Service, id_: str, **changed: Any) -> dict[str, Any]:
    body = payment(id=id_, **({"analyze": ASKED} | changed))
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["payment"]["analyses"]


async def explained(service: Service, id_: str) -> dict[str, Any]:
    answer = await service.client.get(f"/v1/payments/{id_}/explanation")
    assert answer.status_code == 200, answer.text
    return answer.json()["explanation"]


async def test_decisions_are_listed_newest_first_by_action_and_rule(service: Service) -> None:
    await publish(service)
    for number in range(4):
        await create(service, f"p-{number}")
    await create(service, "plain", analyze={})

    async def ids(**query: str) -> list[str]:
        page = (await service.client.get("/v1/decisions", params=query)).json()
        assert page["cursor"] is None
        return [item["id"] for item in page["decisions"]]

    assert await ids() == ["plain", "p-3", "p-2", "p-1", "p-0"]
    assert await ids(rule="gate") == ["p-3", "p-2", "p-1", "p-0"]
    assert await ids(rule="gate", action="deny") == ["p-3", "p-2"]
    assert await ids(rule="nobody") == []
    assert await ids(since="2026-09-10T00:26:40Z") == ["plain", "p-3", "p-2", "p-1", "p-0"]
    assert await ids(since="2026-09-10T00:26:41Z") == []


async def test_decisions_are_read_in_pages(service: Service) -> None:
    for number in range(7):
        await create(service, f"p-{number}")
    found: list[str] = []
    cursor = None
    while True:
        query = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await service.client.get("/v1/decisions", params=query)).json()
        found += [item["id"] for item in page["decisions"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == [f"p-{number}" for number in reversed(range(7))]


async def test_an_unknown_action_is_refused(service: Service) -> None:
    answer = await service.client.get("/v1/decisions", params={"action": "hug"})
    assert errors(answer) == [("action", "invalid_value")]


async def test_an_explanation_names_signals_conditions_and_every_parts_value(
    service: Service,
) -> None:
    await publish(service)
    for number in range(3):
        analyses = await create(service, f"p-{number}")
    found = await explained(service, "p-2")
    assert found["analyses"] == analyses
    assert found["repeated"] is True
    assert found["scorecard"]["score"] == analyses["bot_behaviour"]["score"]
    assert {signal["outcome"] for signal in found["scorecard"]["signals"]} <= {
        "met", "refused", "undecided",
    }  # fmt: skip
    rule = found["rule"]
    assert (rule["version"], rule["met"], rule["nearest"]) == (1, "busy", None)
    assert [condition["outcome"] for condition in rule["conditions"]] == [
        "refused", "met", "not reached",
    ]  # fmt: skip
    parts = rule["conditions"][1]["when"]["parts"]
    assert [(part["text"], part["value"]) for part in parts] == [
        ("uses > 2", "true"),
        ("amount > 100.00", "true"),
    ]
    history = rule["histories"][0]
    assert (history["keys"], history["value"], history["window"]) == (['"u-1"'], "3", "1h")


async def test_without_a_met_condition_the_nearest_is_named(service: Service) -> None:
    await publish(service)
    await create(service, "p-0")
    found = await explained(service, "p-0")
    assert (found["rule"]["met"], found["rule"]["nearest"]) == (None, "busy")


async def test_an_explanation_stays_the_same_whatever_changes(service: Service) -> None:
    await publish(service)
    await service.client.put("/v1/lists/trusted/entries", json={"entries": [{"value": "u-1"}]})
    await create(service, "p-0")
    before = await explained(service, "p-0")
    assert before["rule"]["met"] == "trusted"
    await service.client.request(
        "DELETE", "/v1/lists/trusted/entries", json={"entries": [{"value": "u-1"}]}
    )
    settings = {"thresholds": {"challenge": 0.1}, "time_zone": "Asia/Tokyo"}
    await service.client.put("/v1/account", json={"account": settings})
    await publish(service, RULE.replace("> 2", "> 7"))
    await service.client.delete("/v1/rules/gate/active")
    await service.client.patch("/v1/payments/p-0", json={"payment": {"status": "failed"}})
    async with open_service(service.folder.parent / "other"):
        assert await explained(service, "p-0") == before


async def test_a_payment_without_an_analysis_is_explained_as_such(service: Service) -> None:
    await create(service, "p-0", analyze={})
    found = await explained(service, "p-0")
    assert (found["scorecard"], found["rule"]) == (None, None)


async def test_an_unknown_payment_has_no_explanation(service: Service) -> None:
    answer = await service.client.get("/v1/payments/nobody/explanation")
    assert answer.status_code == 404
    assert errors(answer) == [("id", "not_found")]
    answer = await service.client.post("/v1/payments/nobody/explanation")
    assert answer.status_code == 405


async def test_a_stored_version_decides_on_when_the_checker_would_refuse_it(
    service: Service,
) -> None:
    """What a version means was settled when it was stored: loading never checks it again."""
    text = RULE.replace("uses > 2", "uses exceeds 2")
    assert read_file(text.encode(), KnownNames()).program is None
    meant = read_file(RULE.encode(), KnownNames()).program
    assert meant is not None
    stored = VersionStored("rule", "gate", 1, text, {}, "", 1, encode_program(meant))
    async with service.engine.changing:
        await make_change(service.engine, 1, "an older release", stored)
    activated = await service.client.put("/v1/rules/gate/active", json={"version": 1})
    assert activated.status_code == 200, activated.text
    for number in range(3):
        analyses = await create(service, f"p-{number}")
    assert analyses["rule"]["condition"]["id"] == "busy"
    assert (await explained(service, "p-2"))["rule"]["met"] == "busy"
