"""A fault on the way, wherever it strikes, leaves nothing of the request in the windows."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tollkeeper.tests.api.http.service import Service, payment

pytestmark = pytest.mark.anyio

RULE = """
rule checkout
  condition again when count(payments by user.id over 1h) > 1 then deny
  condition paid when count(payments by user.id over 1h where status == "succeeded") > 0 then challenge
"""
SIGN_INS = """
event sign_in
  field user: string required
  metric attempts = count(events by user over 1h)
"""
WAY_OF_A_PAYMENT = (
    "engine.decide.decide",
    "engine.decide.payment_transitions",
    "engine.decide.encode_stored",
    "api.http.payments.analyses",
    "api.http.payments.repeatable",
    "engine.journal.sqlite.SqliteJournal.append",
)
WAY_OF_AN_UPDATE = ("engine.update.payment_transitions", "engine.update.encode_stored")
WAY_OF_AN_EVENT = (
    "engine.events.accept.transitions_at",
    "engine.events.accept.metrics_of",
    "engine.events.accept.encode_stored",
    "api.http.events.encode",
    "api.http.events.repeatable",
)


class PlantedFaultError(Exception):
    """Nothing that the service knows."""


def fail(*_given: Any, **_more: Any) -> Any:
    raise PlantedFaultError


async def send(service: Service, path: str, body: Any, method: str = "POST") -> httpx.Response:
    return await service.client.request(method, path, json=body)


async def status_of(service: Service, path: str, body: Any, method: str = "POST") -> int:
    """The status of an answer, the log's lines of which nobody reads."""
    with capture_logs():
        return (await send(service, path, body, method)).status_code


def analysed(user: str) -> dict[str, Any]:
    return payment(user={"id": user}, analyze={"bot_behaviour": True, "rule": {"name": "checkout"}})


async def test_a_fault_leaves_nothing_counted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in (("rules/checkout", RULE), ("event-types/sign_in", SIGN_INS)):
        made = await service.client.post(f"/v1/{path}/versions?publish=true", content=text)
        assert made.status_code == 201, made.text

    for number, fault in enumerate(WAY_OF_A_PAYMENT):
        sent = analysed(f"user-{number}")
        with monkeypatch.context() as planted:
            planted.setattr(f"tollkeeper.{fault}", fail)
            assert await status_of(service, "/v1/payments", sent) == 500, fault
        answer = (await send(service, "/v1/payments", sent)).json()
        rule = answer["payment"]["analyses"]["rule"]
        assert rule["condition"] is None, fault

    first = (await send(service, "/v1/payments", analysed("updated"))).json()["payment"]["id"]
    change = {
        "payment": {
            "status": "succeeded",
            "transactions": [
                {"status": "succeeded", "connector": {"id": "c", "response_code": "00"}}
            ],
        }
    }
    for fault in WAY_OF_AN_UPDATE:
        with monkeypatch.context() as planted:
            planted.setattr(f"tollkeeper.{fault}", fail)
            assert await status_of(service, f"/v1/payments/{first}", change, "PATCH") == 500, fault
    windows, active = service.engine.windows, service.engine.active
    loaded = active[service.engine.state.numbers["shop"]].rules["checkout", 1]
    own = [(window, ("updated",)) for window in loaded.reading.plan.windows]
    number = service.engine.state.numbers["shop"]
    assert await windows.read(number, service.engine.clock(), own) == (1, 0)

    for fault in WAY_OF_AN_EVENT:
        sent_event = {"event": {"type": "sign_in", "data": {"user": fault}}}
        with monkeypatch.context() as planted:
            planted.setattr(f"tollkeeper.{fault}", fail)
            assert await status_of(service, "/v1/events", sent_event) == 500, fault
        answer = (await send(service, "/v1/events", sent_event)).json()
        assert answer["event"]["metrics"] == {"attempts": 1}, fault
