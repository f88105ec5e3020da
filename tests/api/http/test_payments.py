"""Payments over HTTP: docs/api.md, sentence by sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import httpx
import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = """
rule checkout "Web shop"
  condition large "More than a hundred"
    when amount > 100
    then deny
  condition unnamed
    when amount > 50
    then challenge
"""
ATTEMPT = {"id": "t-1", "status": "declined", "connector": {"id": "acq-1", "response_code": "51"}}


async def create(service: Service, **changed: Any) -> dict[str, Any]:
    answer = await service.client.post("/v1/payments", json=payment(**changed))
    assert answer.status_code == 201, answer.text
    return answer.json()["payment"]


async def publish(service: Service, text: str = RULE, name: str = "checkout") -> None:
    answer = await service.client.post(f"/v1/rules/{name}/versions?publish=true", content=text)
    assert answer.status_code == 201, answer.text


async def test_a_created_payment_gets_id_status_score_and_action(service: Service) -> None:
    created = await create(service, id="p-1")
    assert created["id"] == "p-1"
    assert created["status"] == "initiated"
    found = created["analyses"]["bot_behaviour"]
    assert found["action"] in ("allow", "challenge", "deny")
    assert 0 <= found["score"] <= 1
    assert found["score"] == round(found["score"], 2)
    assert created["analyses"]["rule"] is None


async def test_an_id_is_generated_when_none_is_sent(service: Service) -> None:
    first, second = await create(service), await create(service, id=None)
    assert first["id"] != second["id"]


async def test_without_an_analysis_only_a_null_rule_comes_back(service: Service) -> None:
    created = await create(service, analyze={})
    assert created["analyses"] == {"rule": None}


async def test_a_rule_without_bot_behaviour_gives_the_rule_alone(service: Service) -> None:
    await publish(service)
    created = await create(service, analyze={"rule": {"name": "checkout"}})
    assert created["analyses"] == {
        "rule": {
            "name": "checkout",
            "version": 1,
            "condition": {"id": "large", "name": "More than a hundred"},
        }
    }


async def test_the_met_condition_decides(service: Service) -> None:
    await publish(service)
    asked = {"bot_behaviour": True, "rule": {"name": "checkout"}}
    created = await create(service, amount=60.0, analyze=asked)
    assert created["analyses"]["bot_behaviour"]["action"] == "challenge"
    assert created["analyses"]["rule"]["condition"] == {"id": "unnamed", "name": None}


async def test_no_met_condition_leaves_the_action_to_the_thresholds(service: Service) -> None:
    await publish(service)
    asked = {"bot_behaviour": True, "rule": {"name": "checkout"}}
    await create(service, amount=1.0)  # Both are then payments of a device that was seen before.
    plain = await create(service, amount=1.0)
    created = await create(service, amount=1.0, analyze=asked)
    assert created["analyses"]["rule"] == {"name": "checkout", "version": 1, "condition": None}
    assert created["analyses"]["bot_behaviour"] == plain["analyses"]["bot_behaviour"]


@pytest.mark.parametrize("name", ["nobody", "draft", None])
async def test_an_unknown_or_unpublished_rule_is_null_and_no_error(
    service: Service, name: str | None
) -> None:
    await service.client.post("/v1/rules/draft/versions", content=RULE.replace("checkout", "draft"))
    created = await create(service, analyze={"bot_behaviour": True, "rule": {"name": name}})
    assert created["analyses"]["rule"] is None
    assert "action" in created["analyses"]["bot_behaviour"]


async def test_the_score_comes_from_the_payments_own_data(service: Service) -> None:
    browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
    person = payment()["payment"]["device"] | {"headers": {"User-Agent": browser}}
    person["fingerprint"] = {"id": "d-person", "provider": "basic"}
    by_script = await create(service, user={"id": "u-2"})
    by_person = await create(service, device=person, user={"id": "u-3"})
    score_of = lambda created: created["analyses"]["bot_behaviour"]["score"]  # noqa: E731
    assert score_of(by_script) > score_of(by_person)


async def test_an_id_used_before_is_taken(service: Service) -> None:
    await create(service, id="p-1")
    answer = await service.client.post("/v1/payments", json=payment(id="p-1"))
    assert answer.status_code == 422
    assert errors(answer) == [("payment.id", "taken")]


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("a/b", "a%2Fb"),
        ("é %", "%C3%A9%20%25"),
        ("?#", "%3F%23"),
        ("..", "%2E%2E"),
        ("//", "%2F%2F"),
    ],
)
async def test_an_id_may_hold_any_character(service: Service, raw: str, escaped: str) -> None:
    await create(service, id=raw)
    path = f"http://test/v1/payments/{escaped}"
    request = service.client.build_request("GET", path)
    request.url = request.url.copy_with(raw_path=f"/v1/payments/{escaped}".encode())
    answer = await service.client.send(request)
    assert answer.json()["payment"]["id"] == raw


async def test_an_update_gives_id_and_status_and_is_kept(service: Service) -> None:
    await create(service, id="p-1")
    body = {"payment": {"status": "declined", "transactions": [ATTEMPT]}}
    answer = await service.client.patch("/v1/payments/p-1", json=body)
    assert (answer.status_code, answer.json()) == (
        200,
        {"payment": {"id": "p-1", "status": "declined"}},
    )
    known = (await service.client.get("/v1/payments/p-1")).json()
    assert known["payment"]["status"] == "declined"
    assert known["payment"]["transactions"][0]["connector"]["response_code"] == "51"
    assert [item["status"] for item in known["history"]] == ["initiated", "declined"]


async def test_each_final_status_may_follow_each_status(service: Service) -> None:
    await create(service, id="p-1", status="blocked")
    for status in ("failed", "succeeded", "blocked", "declined", "failed"):
        body = {"payment": {"status": status, "transactions": [ATTEMPT]}}
        answer = await service.client.patch("/v1/payments/p-1", json=body)
        assert answer.json()["payment"]["status"] == status


async def test_an_update_cannot_go_back_to_initiated(service: Service) -> None:
    await create(service, id="p-1")
    answer = await service.client.patch(
        "/v1/payments/p-1", json={"payment": {"status": "initiated"}}
    )
    assert answer.status_code == 422
    assert errors(answer) == [("payment.status", "invalid_value")]


async def test_updating_or_reading_an_unknown_payment_is_404(service: Service) -> None:
    body = {"payment": {"status": "failed"}}
    for answer in (
        await service.client.patch("/v1/payments/nobody", json=body),
        await service.client.get("/v1/payments/nobody"),
    ):
        assert answer.status_code == 404
        assert errors(answer) == [("id", "not_found")]


async def test_a_payment_is_updated_so_often_and_no_more(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.update.MAX_UPDATES", 3)
    await create(service, id="p-1")
    statuses = ("failed", "blocked", "failed", "blocked")
    answers = [
        await service.client.patch("/v1/payments/p-1", json={"payment": {"status": status}})
        for status in statuses
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 422]
    assert errors(answers[-1]) == [("payment", "too_long")]
    known = (await service.client.get("/v1/payments/p-1")).json()
    assert known["payment"]["status"] == "failed"
    assert len(known["history"]) == 4


async def test_a_transaction_sent_again_replaces_that_attempt(service: Service) -> None:
    await create(service, id="p-1")
    won = ATTEMPT | {"status": "succeeded", "connector": {"id": "acq-1", "response_code": "00"}}
    for status, attempt in (("declined", ATTEMPT), ("succeeded", won)):
        body = {"payment": {"status": status, "transactions": [attempt]}}
        await service.client.patch("/v1/payments/p-1", json=body)
    known = (await service.client.get("/v1/payments/p-1")).json()["payment"]
    assert [attempt["status"] for attempt in known["transactions"]] == ["succeeded"]


async def test_all_violations_come_back_together(service: Service) -> None:
    body = payment(currency="EURO", type="gift", status="succeeded", amount=10.999)
    del body["payment"]["merchant"]["id"]
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 422
    assert sorted(errors(answer)) == [
        ("payment.amount", "precision"),
        ("payment.currency", "invalid_value"),
        ("payment.merchant.id", "missing"),
        ("payment.transactions", "required_by_status"),
        ("payment.type", "invalid_value"),
    ]


async def test_confidential_headers_and_card_numbers_are_never_kept(service: Service) -> None:
    device = payment()["payment"]["device"]
    device["headers"] = {"Cookie": "s=1", "Authorization": "Bearer x", "Accept": "*/*"}
    await create(
        service, id="p-1", device=device, metadata={"note": "4111 1111 1111 1111", "cvv": "123"}
    )
    known = (await service.client.get("/v1/payments/p-1")).json()["payment"]
    assert known["device"]["headers"] == {"Accept": "*/*"}
    assert "cvv" not in known["metadata"]
    assert "4111 1111 1111 1111" not in known["metadata"]["note"]
    stored = (service.folder / "tollkeeper.db").read_bytes() + (
        service.folder / "tollkeeper.db-wal"
    ).read_bytes()
    assert b"4111 1111 1111 1111" not in stored
    assert b"Bearer x" not in stored


async def test_the_same_request_under_an_idempotency_key_gets_the_stored_answer(
    service: Service,
) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first = await service.client.post("/v1/payments", json=payment(), headers=headers)
    again = await service.client.post("/v1/payments", json=payment(), headers=headers)
    assert (again.status_code, again.content) == (201, first.content)


async def test_a_request_that_is_sent_again_before_it_is_answered_is_done_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists, may_go_on = service.engine.journal.exists, asyncio.Event()

    async def slow(*record: Any) -> bool:
        await may_go_on.wait()
        return await exists(*record)

    # As a journal over a network is: others are answered while it looks an id up.
    monkeypatch.setattr(service.engine.journal, "exists", slow)
    sign_in = {"event": {"type": "sign_in", "data": {"user": "ana"}}}
    text = "event sign_in\n  field user: string required\n"
    await service.client.post("/v1/event-types/sign_in/versions?publish=true", content=text)
    for path, body in (("/v1/payments", payment()), ("/v1/events", sign_in)):
        may_go_on.clear()
        headers = {"Idempotency-Key": path}
        answers = await all_at_once(
            may_go_on, [service.client.post(path, json=body, headers=headers) for _ in range(3)]
        )
        assert [each.status_code for each in answers] == [201] * 3
        assert len({each.content for each in answers}) == 1
    assert not service.engine.locks


async def test_updates_and_labels_at_once_are_counted_one_after_the_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_record, may_go_on = service.engine.journal.of_record, asyncio.Event()

    async def slow(*record: Any) -> Any:
        found = await of_record(*record)
        await may_go_on.wait()
        return found

    rule = (
        "rule gate\n  condition failing when count(payments by user.id over 1h"
        ' where status == "failed" and label == "fraud") == 2 then deny\n'
    )
    await service.client.post("/v1/rules/gate/versions?publish=true", content=rule)
    decided = {"analyze": {"rule": {"name": "gate"}}}
    for id_ in ("p-1", "p-2"):
        await service.client.post("/v1/payments", json=payment(id=id_, **decided))
    monkeypatch.setattr(service.engine.journal, "of_record", slow)
    failed, fraud = {"payment": {"status": "failed"}}, {"label": "fraud"}
    asked = []
    for path in ("/v1/payments/p-1", "/v1/payments/p-2"):
        asked += [service.client.patch(path, json=failed) for _ in range(2)]
        asked.append(service.client.put(f"{path}/labels/review", json=fraud))
    answers = await all_at_once(may_go_on, asked)
    assert [each.status_code for each in answers] == [200] * 6
    third = await service.client.post("/v1/payments", json=payment(id="p-3", **decided))
    assert third.json()["payment"]["analyses"]["rule"]["condition"]["id"] == "failing"


async def test_a_version_that_is_published_while_an_id_is_looked_up_decides(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists, path = service.engine.journal.exists, "/v1/rules/gate/versions?publish=true"

    async def slow(*record: Any) -> bool:
        monkeypatch.undo()
        published = await service.client.post(path, content=rule("deny"))
        assert published.status_code == 201
        return await exists(*record)

    def rule(action: str) -> str:
        return f"rule gate\n  condition all when amount > 0 then {action}\n"

    await service.client.post(path, content=rule("allow"))
    monkeypatch.setattr(service.engine.journal, "exists", slow)
    body = payment(analyze={"bot_behaviour": True, "rule": {"name": "gate"}})
    analyses = (await service.client.post("/v1/payments", json=body)).json()["payment"]["analyses"]
    assert (analyses["rule"]["version"], analyses["bot_behaviour"]["action"]) == (2, "deny")


async def all_at_once(
    may_go_on: asyncio.Event, asked: list[Awaitable[httpx.Response]]
) -> list[httpx.Response]:
    """The answers to requests, all of which have begun before any may go on."""
    sent = [asyncio.ensure_future(each) for each in asked]
    for _ in range(200):
        await asyncio.sleep(0)
    may_go_on.set()
    return [await each for each in sent]


async def test_another_body_under_an_idempotency_key_is_refused(service: Service) -> None:
    headers = {"Idempotency-Key": "k-1"}
    await service.client.post("/v1/payments", json=payment(), headers=headers)
    other = await service.client.post("/v1/payments", json=payment(amount=1), headers=headers)
    assert other.status_code == 422
    assert errors(other) == [("idempotency-key", "idempotency_mismatch")]


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"", 422, ("body", "malformed_json")),
        (b"{", 422, ("body", "malformed_json")),
        (b"\xff\xfe", 422, ("body", "malformed_json")),
        (b"[" * 100_000, 422, ("body", "malformed_json")),
        (b"{}", 422, ("payment", "missing")),
        (b" " * 300_000, 413, ("body", "too_large")),
    ],
)
async def test_a_body_that_is_none_is_answered_in_the_one_error_body(
    shared_service: Service, body: bytes, status: int, expected: tuple[str, str]
) -> None:
    answer = await shared_service.client.post("/v1/payments", content=body)
    assert answer.status_code == status
    assert errors(answer) == [expected]


async def test_what_was_answered_is_there_after_a_restart(service: Service) -> None:
    await create(service, id="p-1")
    entries = await service.engine.journal.states(1, "p-1")
    assert len(entries) == 1
