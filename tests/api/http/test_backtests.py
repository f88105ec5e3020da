"""Backtests over HTTP: started, watched, read and ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.grammar.program import Rule
from tollkeeper.tests.api.http.service import NOW, Service, errors, payment

pytestmark = pytest.mark.anyio

STRICT = 'rule gate\n  condition large "Large" when amount > 100.00 then deny\n'
LAX = 'rule gate\n  condition large "Large" when amount > 250.00 then deny\n'


@pytest.fixture
async def shop(service: Service) -> Service:
    """Three payments, two of them denied, the largest one a fraud."""
    stored = await service.client.post("/v1/rules/gate/versions?publish=true", content=STRICT)
    assert stored.status_code == 201
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    for number, amount in enumerate((10, 200, 300)):
        body = payment(id=f"p-{number}", amount=amount, analyze=asked)
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
    label = await service.client.put("/v1/payments/p-2/labels/chargeback", json={"label": "fraud"})
    assert label.status_code == 200
    return service


async def finished(service: Service, sent: dict[str, Any]) -> dict[str, Any]:
    answer = await service.client.post("/v1/backtests", json=sent)
    assert answer.status_code == 202, answer.text
    id_ = answer.json()["backtest"]["id"]
    while True:
        found: dict[str, Any] = (await service.client.get(f"/v1/backtests/{id_}")).json()
        if found["backtest"]["state"] not in ("waiting", "running"):
            return found["backtest"]
        await asyncio.sleep(0.02)


async def test_a_text_is_tried_on_what_was_decided(shop: Service) -> None:
    found = await finished(shop, {"text": LAX, "since": "1d"})
    assert (found["state"], found["share"], found["name"]) == ("done", 1.0, "gate")
    assert found["version"] is None
    report = found["report"]
    assert report["changed"]["payments"] == 1
    (change,) = report["changes"]
    (first,) = found["first_changes"]
    assert (first["was"], first["now"]) == (change["was"], change["now"])
    assert [first["example"]] == change["examples"]
    assert {each["value"]: each["payments"] for each in report["labels"]} == {None: 2, "fraud": 1}


async def test_the_report_is_that_of_the_command(shop: Service) -> None:
    stored = await shop.client.post("/v1/rules/gate/versions", content=LAX)
    assert stored.json()["rule"]["version"] == 2
    sent = {"version": {"name": "gate", "version": 2}, "since": "1d"}
    found = await finished(shop, sent)
    stored_version = shop.engine.state.accounts[1].files["rule", "gate"].versions[1]
    program = decode_program(stored_version.program)
    assert isinstance(program, Rule)
    period = (NOW - 86_400_000_000, NOW)
    report = await asyncio.to_thread(
        backtest_account, Path(shop.folder), "shop", program, period, {}, unwatched
    )
    assert msgspec.json.encode(report) == msgspec.json.encode(
        msgspec.convert(found["report"], type(report))
    )


async def test_one_goes_on_at_a_time_and_can_be_ended(shop: Service) -> None:
    first = (await shop.client.post("/v1/backtests", json={"text": LAX})).json()["backtest"]
    second = await shop.client.post("/v1/backtests", json={"text": LAX})
    assert second.status_code == 409
    assert errors(second) == [("id", "conflict")]
    ended = await shop.client.delete(f"/v1/backtests/{first['id']}")
    assert ended.json()["backtest"]["state"] == "cancelled"
    assert (await shop.client.get("/v1/backtests")).json() == {"backtests": []}
    assert (await shop.client.get(f"/v1/backtests/{first['id']}")).status_code == 404


async def test_another_account_sees_none_of_it(shop: Service) -> None:
    first = (await shop.client.post("/v1/backtests", json={"text": LAX})).json()["backtest"]
    await shop.account("other")
    async with shop.client_with(await shop.key("other", "rules")) as other:
        assert (await other.get("/v1/backtests")).json() == {"backtests": []}
        assert (await other.get(f"/v1/backtests/{first['id']}")).status_code == 404
        assert (await other.delete(f"/v1/backtests/{first['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, [("text", "invalid_value")]),
        ({"text": LAX, "version": {"name": "gate", "version": 1}}, [("text", "invalid_value")]),
        (
            {"text": "rule gate\n  condition a when amuont > 1 then deny"},
            [("text.rule:2:20", "unknown-name")],
        ),
        ({"text": "definitions d\n"}, [("text", "invalid_value")]),
        ({"text": LAX, "since": "yesterday"}, [("since", "invalid_value")]),
        ({"text": LAX, "since": "2100-01-01T00:00:00Z"}, [("since", "out_of_range")]),
    ],
)
async def test_what_can_not_be_tried_is_refused(
    shared_service: Service, sent: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    answer = await shared_service.client.post("/v1/backtests", json=sent)
    assert answer.status_code == 422
    assert errors(answer) == expected


async def test_a_version_that_is_not_there_is_not_found(service: Service) -> None:
    sent = {"version": {"name": "gate", "version": 1}}
    assert (await service.client.post("/v1/backtests", json=sent)).status_code == 404
