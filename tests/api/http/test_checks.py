"""Texts are checked, tested and priced over HTTP, and nothing is stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tollkeeper.api.http import checks
from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.engine.offline.jobs import jobs
from tollkeeper.grammar.formatter import format_file
from tollkeeper.tests.api.http.service import HURRIED, Service, errors, need_all_memory

pytestmark = pytest.mark.anyio

RULE = """rule gate
  let tries = count(payments by user.id, merchant.id over 3h)
  condition large "Large"
    when tries > 3 and amount > 100.00 and currency == "EUR"
    then deny

  test "large ones are denied"
    given tries = 4, amount = 200.00, currency = "EUR"
    expect deny by large
  test "nothing is known of a first one"
    given amount = 200.00, currency = "EUR"
    expect deny
"""


async def check(service: Service, text: str) -> dict[str, Any]:
    answer = await service.client.post("/v1/checks", json={"text": text})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_text_is_checked_tested_and_laid_out_without_being_stored(
    service: Service,
) -> None:
    found = await check(service, RULE)
    assert (found["kind"], found["name"], found["diagnostics"]) == ("rule", "gate", [])
    assert found["formatted"] == format_file(RULE) != RULE
    first, second = found["tests"]
    assert first["passed"]
    assert first["failures"] == []
    assert not second["passed"]
    assert second["span"]["line"] == 10
    [failure] = second["failures"]
    assert (failure["line"], failure["expected"], failure["came_out"]) == (12, "deny", "default")
    assert failure["reasons"][0] == "condition large was not met, for a missing value"
    assert found["coverage"]["goals"] == 5
    assert {each["text"] for each in found["coverage"]["missed"]} == {
        "amount > 100.00",
        'currency == "EUR"',
    }
    assert found["windows"] == [
        {
            "text": "count(payments by user.id, merchant.id over 3h)",
            "over": "3h",
            "held": False,
        }
    ]
    assert (await service.client.get("/v1/rules")).json() == {"rules": []}


async def test_a_window_that_is_there_already_costs_nothing(service: Service) -> None:
    stored = await service.client.post(
        "/v1/rules/gate/versions?publish=true&untested=true", content=RULE
    )
    assert stored.status_code == 201
    assert [each["held"] for each in (await check(service, RULE))["windows"]] == [True]
    longer = RULE.replace("over 3h", "over 4h")
    assert [each["held"] for each in (await check(service, longer))["windows"]] == [False]


async def test_an_error_has_its_place_and_its_fix(service: Service) -> None:
    found = await check(service, "rule gate\n  condition a when amuont > 5 then deny\n")
    [error] = [each for each in found["diagnostics"] if each["severity"] == "error"]
    span = {"line": 2, "column": 20, "end_line": 2, "end_column": 26}
    assert (error["code"], error["span"]) == ("unknown-name", span)
    assert error["fix"] == [{"span": span, "replacement": "amount"}]
    assert (found["kind"], found["tests"], found["coverage"]) == (None, [], None)
    assert found["formatted"] is not None


async def test_a_text_that_can_not_be_parsed_is_not_laid_out(service: Service) -> None:
    found = await check(service, "rule rule rule")
    assert found["formatted"] is None
    assert found["diagnostics"]


async def test_a_test_reads_no_file_of_the_service(service: Service) -> None:
    text = 'rule gate\n  condition a when amount > 5 then deny\n  test "t"\n    given payment "/etc/passwd"\n    expect deny\n'
    [test] = (await check(service, text))["tests"]
    assert not test["passed"]
    assert test["error"] == "it takes `/etc/passwd`, and no file came with the text"


async def test_what_the_account_has_is_known(service: Service) -> None:
    shared = 'definitions shared\n  list partners: string\n  let small = amount < 5.00 and currency == "EUR"\n'
    await service.client.post("/v1/definitions/shared/versions?publish=true", content=shared)
    event = "event login\n  field user: string required\n  metric tries = count(events by user over 3h)\n"
    await service.client.post("/v1/event-types/login/versions?publish=true", content=event)
    text = (
        "rule gate\n  use shared\n  condition a when small and merchant.id in @partners then deny\n"
        "  condition b when events.login.tries[user.id] > 3 then deny\n"
    )
    found = await check(service, text)
    assert [each for each in found["diagnostics"] if each["severity"] == "error"] == []
    names = (await service.client.get("/v1/vocabulary")).json()
    assert names["defined"] == [
        {
            "definitions": "shared",
            "name": "small",
            "type": "boolean",
            "text": 'amount < 5.00 and currency == "EUR"',
        }
    ]
    assert names["event_types"] == [
        {
            "name": "login",
            "fields": {"id": "string", "timestamp": "instant", "user": "string"},
            "metrics": [{"name": "tries", "type": "number from 0", "keys": ["string"]}],
        }
    ]
    assert {"amount", "method.card.bin"} <= {each["name"] for each in names["names"]}
    assert {"when", "condition"} <= set(names["keywords"])


async def test_a_text_that_takes_too_long_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(jobs, "PATIENCE", 100_000)
    answer = await service.client.post("/v1/checks", json={"text": RULE})
    assert answer.status_code == 422
    assert errors(answer) == [("text", "out_of_range")]


async def test_a_text_whose_differences_need_too_much_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true&untested=true", content=RULE)
    monkeypatch.setattr(checks, "differences_from", need_all_memory)
    answer = await service.client.post("/v1/checks", json={"text": RULE})
    assert answer.status_code == 422
    assert errors(answer) == [("text", "out_of_range")]


PROMISED = """rule gate
  condition small when amount < 100.00 then deny
  condition large when amount >= 100.00 then challenge
  must "small payments are never denied" when amount < 5.00 never deny
"""


async def test_what_must_hold_and_what_a_text_changes_is_proved(service: Service) -> None:
    plain = PROMISED.partition("  must")[0].replace("< 100.00", "< 50.00")
    stored = await service.client.post("/v1/rules/gate/versions?publish=true", content=plain)
    assert stored.status_code == 201
    answer = await service.client.post("/v1/checks?prove=true", json={"text": PROMISED})
    assert answer.status_code == 200, answer.text
    proofs = answer.json()["proofs"]
    assert (proofs["complete"], proofs["untried"]) == (True, [])
    said = {(each["claim"], each["of"]): each for each in proofs["proofs"]}
    same = said["same", "gate"]
    assert same["answer"] == "refuted"
    before, after = same["decided"]
    assert before != after
    assert said["wider", "small"]["answer"] == "proved"
    assert said["reached", "large"]["answer"] == "proved"
    broken = said["must", "small payments are never denied"]
    assert broken["answer"] == "refuted"
    assert broken["payment"]["amount"] < 5
    assert broken["decided"] == [{"action": "deny", "condition": "small"}]


async def test_a_client_that_leaves_ends_its_proof(service: Service) -> None:
    """Over ASGI, as the server tells it; the end of the process is tests/engine/offline/prove."""
    body = msgspec.json.encode({"text": PROMISED})
    sent: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
    answered: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/checks",
        "raw_path": b"/v1/checks",
        "query_string": b"prove=true",
        "http_version": "1.1",
        "headers": [
            (b"host", b"test"),
            (b"content-type", b"application/json"),
            (b"authorization", service.client.headers["authorization"].encode()),
        ],
    }

    async def receive() -> Any:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answered.append(message)

    app = public_app(service_of(service.engine, HURRIED, jobs=service.jobs))
    await app(scope, receive, send)  # type: ignore[arg-type]
    assert answered[0]["status"] == 400
    assert b"the client left" in answered[1]["body"]


async def test_proofs_are_there_only_when_they_are_asked_for(service: Service) -> None:
    assert "proofs" not in await check(service, RULE)
