"""What a request's head may say, and what the head of each answer tells."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio


async def test_every_answer_has_a_request_id_that_its_log_line_tells(service: Service) -> None:
    seen = set()
    for method, path in (
        ("POST", "/v1/payments"),
        ("GET", "/v1/rules"),
        ("GET", "/v1/payments/none"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/payments"),
        ("OPTIONS", "/v1/payments"),
        ("GET", "/health/live"),
    ):
        with capture_logs() as lines:
            answer = await service.client.request(method, path)
        (line,) = [each for each in lines if each["event"] == "request"]
        assert answer.headers["x-request-id"] == line["request_id"], path
        seen.add(answer.headers["x-request-id"])
    assert len(seen) == 7


async def test_the_audit_names_the_request_that_asked_for_a_change(service: Service) -> None:
    body = {"account": {"time_zone": "Europe/Lisbon"}}
    headers = {"x-request-id": "night-shift-7"}
    assert (await service.client.put("/v1/account", json=body, headers=headers)).status_code == 200
    latest, *_, first = (await service.client.get("/v1/audit")).json()["audit"]
    assert (latest["action"], latest["request"]) == ("settings_changed", "night-shift-7")
    assert (first["action"], first["request"]) == ("account_created", None)


@pytest.mark.parametrize("sent", ["a", "req-1/Ä".encode("ascii", "ignore").decode(), "!" * 128])
async def test_the_callers_own_request_id_is_taken(shared_service: Service, sent: str) -> None:
    answer = await shared_service.client.get("/v1/rules", headers={"x-request-id": sent})
    assert answer.headers["x-request-id"] == sent


@pytest.mark.parametrize("sent", [b"", b"two words", b"x" * 129, b"caf\xe9", b"a\tb"])
async def test_a_request_id_that_is_not_sane_is_replaced(
    shared_service: Service, sent: bytes
) -> None:
    answer = await shared_service.client.get("/v1/rules", headers=[(b"x-request-id", sent)])
    assert len(answer.headers["x-request-id"]) == 24


async def test_a_header_that_says_who_asks_may_be_sent_once(service: Service) -> None:
    twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")]
    async with service.client_with(None) as stranger:
        answer = await stranger.get("/v1/rules", headers=twice)
    assert (answer.status_code, errors(answer)) == (400, [("authorization", "malformed_request")])


async def test_other_headers_may_be_repeated(service: Service) -> None:
    answer = await service.client.get("/v1/rules", headers=[("x-a", "1"), ("x-a", "2")])
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [
        ("/v1/decisions", {"sinse": "2026-09-10T00:00:00Z"}, "sinse"),
        ("/v1/rules", {"limit": "5"}, "limit"),
        ("/v1/alerts", {"limit": "5", "Cursor": "1"}, "Cursor"),
        ("/v1/payments/p-1", {"expand": "all"}, "expand"),
        ("/v1/rules/a/diff", {"from_": "1"}, "from_"),
        ("/v1/account", {"\x07": ""}, "…"),
    ],
)
async def test_a_query_parameter_that_nothing_reads_is_refused(
    shared_service: Service, path: str, query: dict[str, str], name: str
) -> None:
    answer = await shared_service.client.get(path, params=query)
    assert (answer.status_code, errors(answer)) == (422, [(name, "unknown_member")])


async def test_a_stranger_learns_nothing_of_the_parameters(service: Service) -> None:
    async with service.client_with(None) as stranger:
        assert (await stranger.get("/v1/rules?limit=5")).status_code == 401


async def test_a_replay_says_that_it_is_one(service: Service) -> None:
    async def send(path: str, body: dict[str, Any]) -> httpx.Response:
        return await service.client.post(path, json=body, headers={"idempotency-key": "k"})

    first = await send("/v1/payments", payment())
    second = await send("/v1/payments", payment())
    assert first.json() == second.json()
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"


async def test_an_idempotency_key_holds_for_one_path(service: Service) -> None:
    body = payment()
    headers = {"idempotency-key": "k"}
    assert (await service.client.post("/v1/payments", json=body, headers=headers)).is_success
    answer = await service.client.post("/v1/events", json=body, headers=headers)
    assert errors(answer) == [("idempotency-key", "idempotency_mismatch")]


async def test_an_idempotency_key_holds_for_one_method(service: Service) -> None:
    headers = {"idempotency-key": "k"}
    created = await service.client.post("/v1/payments", json=payment(id="p"), headers=headers)
    update = {"payment": {"status": "blocked"}}
    updated = await service.client.patch("/v1/payments/p", json=update, headers=headers)
    assert (created.status_code, updated.status_code) == (201, 200)
    assert updated.json() == {"payment": {"id": "p", "status": "blocked"}}
    assert "idempotent-replayed" not in updated.headers


async def test_what_the_account_answers_can_be_sent_back(service: Service) -> None:
    read = (await service.client.get("/v1/account")).json()
    answer = await service.client.put("/v1/account", json=read)
    assert (answer.status_code, answer.json()["account"]) == (200, read["account"])
