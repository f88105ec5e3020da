"""Labels that events bring: told, taken back, and read by whoever reads labels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.tests.api.http.service import Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

REVIEWED = """event reviewed
  field payment: string required
  field verdict: "bad" | "good" | "unclear" required
  metric bad = count(events by payment over 1d where verdict == "bad")
  label fraud of payment when bad >= 2
  label unsure of payment when verdict == "bad" or verdict == "unclear"
  label legitimate of payment when verdict == "good"
"""
FRAUD = {"reason": "fraud"}
WEEKDAYS = """event dispute
  field user: string required
  metric days = count(events by user over 1d)
  let found = weekday(timestamp + days * 1d)
  label fraud of found when days >= 2
"""


async def publish(service: Service, name: str, text: str) -> None:
    path = f"/v1/event-types/{name}/versions?publish=true"
    answer = await service.client.post(path, content=text)
    assert answer.status_code == 201, answer.text


async def tell(service: Service, type_: str, **data: Any) -> None:
    sent = {"event": {"type": type_, "data": data}}
    answer = await service.client.post("/v1/events", json=sent)
    assert answer.status_code == 201, answer.text


async def labels(service: Service, id_: str) -> dict[str, str]:
    found = (await service.client.get(f"/v1/payments/{id_}/labels")).json()
    return {each["source"]: each["label"] for each in found["labels"]}


@pytest.fixture
async def shop(service: Service) -> Service:
    for number in range(2):
        body = payment(id=f"p-{number}")
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
    text = (SHIPPED / "events" / "chargeback.rule").read_text()
    await publish(service, "chargeback", text)
    return service


async def test_a_chargeback_for_fraud_labels_its_payment_until_the_dispute_is_won(
    shop: Service,
) -> None:
    await tell(shop, "chargeback", payment_id="p-0", stage="chargeback", reason="fraud")
    assert await labels(shop, "p-0") == {"chargeback": "fraud"}
    found = (await shop.client.get("/v1/payments?label=fraud")).json()["payments"]
    assert [each["id"] for each in found] == ["p-0"]
    await tell(shop, "chargeback", payment_id="p-0", stage="won", reason="fraud")
    assert await labels(shop, "p-0") == {}
    assert (await shop.client.get("/v1/payments?label=fraud")).json()["payments"] == []


async def test_what_meets_no_condition_or_names_no_payment_labels_nothing(shop: Service) -> None:
    await tell(shop, "chargeback", payment_id="p-1", stage="chargeback", reason="not_received")
    await tell(shop, "chargeback", payment_id="p-9", stage="chargeback", reason="fraud")
    assert await labels(shop, "p-1") == {}
    assert (await shop.client.get("/v1/labels")).json()["labels"] == []


async def test_the_first_condition_that_is_met_counts_and_metrics_may_be_read(
    shop: Service,
) -> None:
    await publish(shop, "reviewed", REVIEWED)
    said = []
    for verdict in ("bad", "bad", "good"):
        await tell(shop, "reviewed", payment="p-1", verdict=verdict)
        said.append(await labels(shop, "p-1"))
    assert said == [{"import": "unsure"}, {"import": "fraud"}, {"import": "fraud"}]


async def test_a_metric_may_tell_which_payment_is_labelled(shop: Service) -> None:
    await publish(shop, "dispute", WEEKDAYS)
    body = payment(id="saturday")
    assert (await shop.client.post("/v1/payments", json=body)).status_code == 201
    # From Thursday on.
    for _ in range(2):
        await tell(shop, "dispute", user="u-1")
    assert await labels(shop, "saturday") == {"import": "fraud"}


async def test_an_event_that_waits_while_its_type_is_withdrawn_is_refused(
    shop: Service,
) -> None:
    await publish(shop, "reviewed", REVIEWED)
    data = {"payment": "p-1", "verdict": "bad"}
    sent = {"event": {"type": "reviewed", "data": data}}
    async with asyncio.timeout(60), shop.engine.locks.of("payment", 1, "p-1"):
        waiting = asyncio.create_task(shop.client.post("/v1/events", json=sent))
        while not shop.engine.locks.of("payment", 1, "p-1")._turns:
            await asyncio.sleep(0)
        answer = await shop.client.delete("/v1/event-types/reviewed/active")
        assert answer.status_code == 200
    assert errors(await waiting) == [("event.type", "inactive_event_type")]


async def test_an_event_that_would_label_a_payment_too_often_is_refused(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.labels.set_label.MAX_LABELS", 2)
    # What says the same again changes nothing.
    for stage in ("chargeback", "chargeback", "lost", "won", "won"):
        await tell(shop, "chargeback", payment_id="p-0", stage=stage, reason="fraud")
    data = {"payment_id": "p-0", "stage": "chargeback", "reason": "fraud"}
    event = {"type": "chargeback", "data": data}
    other = {"type": "chargeback", "data": data | {"payment_id": "p-1"}}
    before = shop.engine.journal.last_sequence()
    alone = await shop.client.post("/v1/events", json={"event": event})
    assert alone.status_code == 422
    assert errors(alone) == [("event.data", "too_long")]
    assert shop.engine.journal.last_sequence() == before
    batch = (await shop.client.post("/v1/events", json={"events": [event, other]})).json()
    assert [each["status"] for each in batch["events"]] == [422, 201]
    assert batch["events"][0]["errors"][0]["field"] == "events[0].data"
    assert await labels(shop, "p-0") == {}
    assert await labels(shop, "p-1") == {"chargeback": "fraud"}


@pytest.mark.parametrize("second", ["p-0", "p-1"])
async def test_of_two_events_with_one_id_at_once_only_the_one_that_is_kept_labels(
    shop: Service, second: str
) -> None:
    events = [
        {"id": "e-1", "type": "chargeback", "data": {"payment_id": id_, "stage": stage, **FRAUD}}
        for id_, stage in (("p-0", "retrieval"), (second, "chargeback"))
    ]
    first_turn, second_turn = (shop.engine.locks.of("payment", 1, id_) for id_ in ("p-0", "p-1"))
    async with asyncio.timeout(60), first_turn, second_turn:
        waiting = asyncio.create_task(shop.client.post("/v1/events", json={"events": events}))
        while not first_turn._turns:
            await asyncio.sleep(0)
        # Both events of the batch are begun in one turn of the loop.
        await asyncio.sleep(0)
    answer = (await waiting).json()
    assert [each["status"] for each in answer["events"]] == [201, 422]
    assert [await labels(shop, id_) for id_ in ("p-0", "p-1")] == [{}, {}]


async def test_labels_of_events_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_service(tmp_path / "data") as service:
        body = payment(id="p-0")
        assert (await service.client.post("/v1/payments", json=body)).status_code == 201
        await publish(service, "chargeback", (SHIPPED / "events" / "chargeback.rule").read_text())
        await tell(service, "chargeback", payment_id="p-0", stage="lost", reason="fraud")
    async with open_service(tmp_path / "data") as service:
        assert await labels(service, "p-0") == {"chargeback": "fraud"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("label fraudulent of payment when bad > 1", "unknown-value"),
        ("label fraud of bad when bad > 1", "wrong-type"),
        ("label fraud of paymnet when bad > 1", "unknown-name"),
        ("label fraud of payment when verdict", "wrong-type"),
    ],
)
async def test_a_wrong_label_is_explained(shared_service: Service, line: str, code: str) -> None:
    text = REVIEWED.replace("label fraud of payment when bad >= 2", line)
    answer = await shared_service.client.post("/v1/checks", json={"text": text})
    assert [each["code"] for each in answer.json()["diagnostics"]] == [code]
