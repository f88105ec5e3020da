"""One line a request: which route, whose, what came of it; nothing that was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.api.http.service import Service, payment

pytestmark = pytest.mark.anyio

RULE = "rule gate\n  condition large when amount > 100 then deny\n"
ATTEMPT = {"id": "t-1", "status": "declined", "connector": {"id": "acq-1", "response_code": "51"}}


async def lines(service: Service, *asked: tuple[str, str, Any]) -> list[dict[str, Any]]:
    """The log of these requests: method, path, body."""
    with capture_logs() as log:
        for method, path, body in asked:
            await service.client.request(method, path, json=body)
    return [dict(line) for line in log]


async def test_a_line_tells_the_route_the_account_and_what_came_of_it(service: Service) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    update = {"payment": {"status": "declined", "transactions": [ATTEMPT]}}
    created, updated, read = await lines(
        service,
        ("POST", "/v1/payments", payment(id="p/1", analyze=asked)),
        ("PATCH", "/v1/payments/p%2F1", update),
        ("GET", "/v1/payments/p%2F1", None),
    )
    assert created.pop("ms") > 0
    assert created.pop("request_id")
    assert created == {
        "event": "request",
        "log_level": "info",
        "method": "POST",
        "route": "/v1/payments",
        "status": 201,
        "account": "shop",
        "key": next(iter(service.engine.state.accounts[1].keys)),
        "peer": "127.0.0.1",
        "payment": "p/1",
        "action": "deny",
        "rule": "gate",
        "version": 1,
    }
    assert (updated["route"], updated["payment"], updated["became"]) == (
        "/v1/payments/{id}",
        "p/1",
        "declined",
    )
    assert (read["method"], read["route"], read["payment"]) == ("GET", "/v1/payments/{id}", "p/1")
    assert {updated["account"], read["account"]} == {"shop"}


async def test_a_refused_request_tells_its_account_too(service: Service) -> None:
    found = await lines(
        service,
        ("POST", "/v1/payments", {}),
        ("PATCH", "/v1/payments/p", {}),
        ("POST", "/v1/events", {}),
        ("PUT", "/v1/account", {}),
        ("PUT", "/v1/lists/a/entries", {}),
    )
    assert [line["status"] for line in found] == [422, 422, 422, 422, 404]
    assert [line["account"] for line in found] == ["shop"] * 5


async def test_nothing_of_a_path_or_body_is_in_a_line(service: Service) -> None:
    person = "ana@shop.example"
    found = await lines(
        service,
        ("GET", f"/v1/payments/{person}", None),
        ("GET", f"/v1/payments/{person}/nowhere", None),
        ("GET", f"/nowhere/{person}?user={person}", None),
        ("POST", f"/v1/rules/{person}/versions", None),
        ("PUT", "/v1/account", {"account": {person: person}}),
        ("DELETE", "/v1/payments/" + person, None),
    )
    assert [line["route"] for line in found] == [
        "/v1/payments/{id}",
        "none",
        "none",
        "/v1/rules/{name}/versions",
        "/v1/account",
        "/v1/payments/{id}",
    ]
    assert person not in str(found)


async def test_a_fault_is_logged_once_with_its_trace_and_its_route(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(type(service.engine.journal), "states", fail)
    failed, line = await lines(service, ("GET", "/v1/payments/ana@shop.example", None))
    assert (failed["event"], failed["log_level"]) == ("failed", "error")
    assert failed["route"] == line["route"] == "/v1/payments/{id}"
    assert line["status"] == 500
    assert "ana@" not in str({**failed, "exc_info": None})


async def test_a_client_that_leaves_within_a_body_is_a_line_and_no_error(
    service: Service,
) -> None:
    """Over ASGI, as the server tells it; the wire is tests/service/test_wire.py."""
    answered = []
    for path in ("/v1/payments", "/v1/events", "/v1/rules/gate/versions"):
        messages = [
            {"type": "http.request", "body": b'{"payment":', "more_body": True},
            {"type": "http.disconnect"},
        ]
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "http_version": "1.1",
            "headers": [
                (b"host", b"test"),
                (b"authorization", service.client.headers["authorization"].encode()),
            ],
        }

        async def receive(left: list[Any] = messages) -> Any:
            return left.pop(0)

        async def send(message: Any) -> None:
            answered.append(message)

        with capture_logs() as log:
            await public_app(service_of(service.engine))(scope, receive, send)  # type: ignore[arg-type]
        (line,) = log
        assert (line["log_level"], line["status"], line["account"]) == ("info", 400, "shop")
        assert line["disconnected"] is True


async def test_the_bounds_of_a_body_are_the_settings(service: Service) -> None:
    settings = Settings(body_bytes=2000)
    service_client = service.client_with(None, settings)
    async with service_client as client:
        client.headers = service.client.headers
        small, large = json.dumps(payment()), json.dumps(payment(metadata={"a": "x" * 2000}))
        assert (await client.post("/v1/payments", content=small)).status_code == 201
        refused = await client.post("/v1/payments", content=large)
        assert refused.status_code == 413
        assert "2000 bytes" in refused.text
