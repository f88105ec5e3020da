"""Events over HTTP: docs/api.md, "Events over HTTP", "Other operations"."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.engine.enter_alerts import enter_missed, settle_transitions
from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.keep import count_transitions
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.outbox_file import ALERTS_FILE
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.purge_alerts import purge_states
from tollkeeper.tests.api.http.service import NOW, Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

SIGN_INS = """
event user_authentication "Sign-ins on the shop."
  field user_id: string required
  field result: "success" | "failure" required
  field ip: ip
  field device: string
  field risk: number
  field at: instant
  field known: boolean
  metric failures = count(events by user_id over 1h where result == "failure")
  metric addresses = distinct(events.ip by user_id over 1d)
  metric risk_sum = sum(events.risk by user_id over 1h)
  monitor brute_force "One user, many failed sign-ins" when failures >= 3
  monitor spread when addresses > 2 by user_id every 10m
"""
RULE = """
rule checkout
  condition attacked when events.user_authentication.failures[user.id] >= 2 then deny
"""


def ago(**span: float) -> str:
    return (from_microseconds(NOW) - timedelta(**span)).isoformat()


def event(user: str = "u-1", result: str = "failure", **changed: Any) -> dict[str, Any]:
    data = {"user_id": user, "result": result, **changed.pop("data", {})}
    return {"type": "user_authentication", "data": data, **changed}


async def publish(
    service: Service, text: str = SIGN_INS, name: str = "user_authentication", **query: Any
) -> httpx.Response:
    path = "rules" if text.lstrip().startswith("rule") else "event-types"
    return await service.client.post(
        f"/v1/{path}/{name}/versions", params={"publish": "true", **query}, content=text
    )


async def send(service: Service, **event_: Any) -> httpx.Response:
    return await service.client.post("/v1/events", json={"event": event_})


async def furnish(service: Service) -> None:
    """The service with the sign-ins published."""
    assert (await publish(service)).status_code == 201


@pytest.fixture
async def shop(service: Service) -> Service:
    await furnish(service)
    return service


@pytest.fixture(scope="module")
async def shared_shop(shared_service: Service) -> Service:
    await furnish(shared_service)
    return shared_service


async def test_an_event_gets_its_id_version_metrics_and_alerts(shop: Service) -> None:
    answer = await send(shop, **event(id="e-1", data={"ip": "203.0.113.7", "risk": 0.25}))
    assert answer.status_code == 201
    assert answer.json() == {
        "event": {
            "id": "e-1",
            "type": "user_authentication",
            "version": 1,
            "metrics": {"failures": 1, "addresses": 1, "risk_sum": 0.25},
            "alerts": [],
        }
    }


async def test_event_types_are_listed_under_the_name_that_they_have_everywhere(
    shop: Service,
) -> None:
    listed = (await shop.client.get("/v1/event-types")).json()
    assert {name: [each["name"] for each in found] for name, found in listed.items()} == {
        "event_types": ["user_authentication"]
    }


async def test_an_unknown_type_is_refused(shop: Service) -> None:
    answer = await send(shop, **event(type="sign_in"))
    assert answer.status_code == 422
    assert errors(answer) == [("event.type", "unknown_event_type")]


async def test_an_inactive_type_is_refused(shop: Service) -> None:
    await shop.client.delete("/v1/event-types/user_authentication/active")
    answer = await send(shop, **event())
    assert errors(answer) == [("event.type", "inactive_event_type")]


async def test_payments_are_no_events_to_submit(shop: Service) -> None:
    assert errors(await send(shop, **event(type="payment"))) == [
        ("event.type", "unknown_event_type")
    ]


async def test_all_violations_come_back_together(shop: Service) -> None:
    answer = await send(
        shop,
        type="user_authentication",
        id=7,
        timestamp=ago(hours=25),
        data={
            "result": "maybe",
            "ip": "203.0.113.300",
            "risk": "high",
            "at": "yesterday",
            "known": 1,
            "device": "x" * 2000,
        },
    )
    assert answer.status_code == 422
    assert sorted(errors(answer)) == [
        ("event.data.at", "invalid_format"),
        ("event.data.device", "too_long"),
        ("event.data.ip", "invalid_format"),
        ("event.data.known", "invalid_type"),
        ("event.data.result", "invalid_value"),
        ("event.data.risk", "invalid_type"),
        ("event.data.user_id", "missing"),
        ("event.id", "invalid_type"),
        ("event.timestamp", "timestamp_too_old"),
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", ("body", "malformed_json")),
        (b"[]", ("body", "invalid_type")),
        (b"{}", ("event", "missing")),
        (b'{"event": null}', ("event", "null")),
        (b'{"events": []}', ("events", "out_of_range")),
        (b'{"event": {"type": "user_authentication"}}', ("event.data", "missing")),
        (b'{"event": {"type": "", "data": {}}}', ("event.type", "invalid_value")),
        (b'{"event": {"type": "user_authentication", "data": []}}', ("event.data", "invalid_type")),
    ],
)
async def test_a_body_that_is_none_is_refused_at_its_place(
    shared_shop: Service, body: bytes, expected: tuple[str, str]
) -> None:
    answer = await shared_shop.client.post("/v1/events", content=body)
    assert answer.status_code == 422
    assert expected in errors(answer)


async def test_a_text_that_is_none_of_very_many_choices_is_answered_with_the_nearest(
    shop: Service,
) -> None:
    choices = [f"method_{number:04}" for number in range(600)] + ["x" * 500]
    field = "  field method: " + " | ".join(f'"{each}"' for each in choices)
    await publish(shop, f"event transfer\n{field}\n", "transfer")

    def transfer(method: str) -> dict[str, Any]:
        return {"event": {"type": "transfer", "data": {"method": method}}}

    answer = await shop.client.post("/v1/events", json=transfer("Method_0123x"))
    assert answer.json()["errors"] == [
        {
            "field": "event.data.method",
            "type": "invalid_value",
            "message": "`method` must be one of 601 values,"
            " such as `method_0123`, `method_0124`, `method_0125`",
        }
    ]
    for given in ("", "a", "zzz", "x" * 100_000):
        answer = await shop.client.post("/v1/events", json=transfer(given))
        assert answer.status_code == 422
        assert len(answer.content) < 1_000


async def test_a_future_event_is_refused(shop: Service) -> None:
    answer = await send(shop, **event(timestamp=ago(seconds=-1)))
    assert errors(answer) == [("event.timestamp", "timestamp_future")]


async def test_an_id_is_used_once_in_the_account(shop: Service) -> None:
    assert (await send(shop, **event(id="e-1"))).status_code == 201
    answer = await send(shop, **event(id="e-1"))
    assert errors(answer) == [("event.id", "taken")]
    assert (await send(shop, **event())).json()["event"]["metrics"]["failures"] == 2


async def test_the_same_request_again_gets_the_stored_response(shop: Service) -> None:
    async def sent(user: str) -> httpx.Response:
        headers = {"idempotency-key": "k-1"}
        return await shop.client.post("/v1/events", json={"event": event(user)}, headers=headers)

    first, again = await sent("u-1"), await sent("u-1")
    assert (again.status_code, again.json()) == (201, first.json())
    assert errors(await sent("u-2")) == [("idempotency-key", "idempotency_mismatch")]
    assert (await send(shop, **event())).json()["event"]["metrics"]["failures"] == 2


async def test_an_event_that_can_t_be_written_leaves_nothing(shop: Service) -> None:
    for _ in range(2):
        await send(shop, **event())
    with sqlite3.connect(shop.folder / "tollkeeper.db") as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON journal BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    refused = [await send(shop, **event()) for _ in range(3)]
    assert all(answer.status_code >= 500 for answer in refused)
    with sqlite3.connect(shop.folder / "tollkeeper.db") as other:
        other.execute("DROP TRIGGER full")
    assert (await shop.client.get("/v1/alerts")).json()["alerts"] == []
    kept = (await send(shop, **event())).json()["event"]
    assert kept["metrics"]["failures"] == 3
    assert kept["alerts"] == ["brute_force"]


async def test_alerts_go_with_the_account_s_retention(shop: Service) -> None:
    for _ in range(3):
        await send(shop, **event(timestamp=ago(hours=20)))
    account = shop.engine.state.accounts[1]
    settings = account.settings
    assert len((await shop.client.get("/v1/alerts")).json()["alerts"]) == 1
    shop.engine.clock = lambda: NOW + settings.retention_days * 24 * 3600 * 1_000_000
    await purge_account(shop.engine, 1)
    assert (await shop.client.get("/v1/alerts")).json()["alerts"] == []


async def test_a_refused_event_is_counted_nowhere(shop: Service) -> None:
    await send(shop, **event(data={"risk": "high"}))
    assert (await send(shop, **event())).json()["event"]["metrics"]["failures"] == 1


async def test_a_batch_answers_for_each_event(shop: Service) -> None:
    sent = [event(id="a"), event(id="b", data={"risk": True}), event(id="a"), event(id="c")]
    answer = await shop.client.post("/v1/events", json={"events": sent})
    assert answer.status_code == 207
    results = answer.json()["events"]
    assert [result["status"] for result in results] == [201, 422, 422, 201]
    assert results[1]["errors"][0]["field"] == "events[1].data.risk"
    assert results[2]["errors"][0]["type"] == "taken"
    assert results[3]["event"]["metrics"]["failures"] == 2


async def test_a_batch_that_is_kept_whole_is_created(shop: Service) -> None:
    sent = [event(user=f"u-{number}") for number in range(1000)]
    answer = await shop.client.post("/v1/events", json={"events": sent})
    assert answer.status_code == 201
    assert len(answer.json()["events"]) == 1000
    answer = await shop.client.post("/v1/events", json={"events": [event()] * 1001})
    assert errors(answer) == [("events", "out_of_range")]


async def test_a_rule_reads_a_metric_of_events_before_and_after_it_is_published(
    shop: Service,
) -> None:
    await send(shop, **event(timestamp=ago(minutes=30)))
    assert (await publish(shop, RULE, "checkout")).status_code == 201
    named = {"bot_behaviour": True, "rule": {"name": "checkout"}}
    body = payment(analyze=named)
    first = (await shop.client.post("/v1/payments", json=body)).json()["payment"]["analyses"]
    assert first["rule"]["condition"] is None
    await send(shop, **event())
    second = (await shop.client.post("/v1/payments", json=body)).json()["payment"]["analyses"]
    assert second["rule"]["condition"]["id"] == "attacked"
    assert second["bot_behaviour"]["action"] == "deny"


async def test_an_alert_that_can_t_be_listed_is_listed_as_soon_as_it_can(shop: Service) -> None:
    with sqlite3.connect(shop.folder / ALERTS_FILE) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON alerts BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    kept = [await send(shop, **event()) for _ in range(3)]
    assert [answer.status_code for answer in kept] == [201, 201, 201]
    with pytest.raises(Unavailable):
        await enter_missed(shop.engine)
    assert (await shop.client.get("/v1/alerts")).json()["alerts"] == []
    with sqlite3.connect(shop.folder / ALERTS_FILE) as other:
        other.execute("DROP TRIGGER full")
    await enter_missed(shop.engine)
    (listed,) = (await shop.client.get("/v1/alerts")).json()["alerts"]
    assert listed["monitor"] == "brute_force"
    assert shop.engine.monitors.open == set()


async def test_an_alert_is_raised_when_a_condition_goes_from_not_met_to_met(
    shop: Service,
) -> None:
    raised = [(await send(shop, **event())).json()["event"]["alerts"] for _ in range(5)]
    assert raised == [[], [], ["brute_force"], [], []]
    listed = (await shop.client.get("/v1/alerts")).json()
    assert [(each["monitor"], each["key"], each["values"]) for each in listed["alerts"]] == [
        ("brute_force", ["u-1"], {"failures": 3})
    ]
    assert listed["cursor"] is None


async def test_each_key_has_alerts_of_its_own(shop: Service) -> None:
    for user in ("u-1", "u-2"):
        raised = [(await send(shop, **event(user))).json()["event"]["alerts"] for _ in range(3)]
        assert raised[-1] == ["brute_force"]


async def test_within_the_cool_down_no_second_alert_is_raised(service: Service) -> None:
    text = """
event sign_in
  field user_id: string required
  field result: string required
  monitor failing when result == "failure" by user_id every 10m
"""
    await publish(service, text, "sign_in")

    async def at(minutes: float, result: str) -> list[str]:
        data = {"user_id": "u-1", "result": result}
        answer = await send(service, type="sign_in", timestamp=ago(minutes=minutes), data=data)
        return answer.json()["event"]["alerts"]

    assert await at(60, "failure") == ["failing"]
    assert await at(59, "success") == []
    assert await at(58, "failure") == []
    # Still met at the first event after the cool-down: what was held back is told now.
    assert await at(49, "failure") == ["failing"]
    assert await at(48, "failure") == []


FAILING = """
event sign_in
  field user_id: string required
  field result: string required
  monitor failing when result == "failure" by user_id every 10m
"""


def remembered(service: Service) -> list[str]:
    """The keys of the states that a start would read."""
    with sqlite3.connect(service.folder / ALERTS_FILE) as other:
        return [key for (key,) in other.execute("SELECT key FROM standings ORDER BY place")]


async def test_what_monitors_remember_is_bounded_also_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.monitors.states.MAX_STATES", 3)

    async def alerts(service: Service, user: str) -> list[str]:
        data = {"user_id": user, "result": "failure"}
        found: list[str] = (await send(service, type="sign_in", data=data)).json()["event"][
            "alerts"
        ]
        return found

    async with open_service(tmp_path / "data") as service:
        await publish(service, FAILING, "sign_in")
        raised = [await alerts(service, f"u-{number}") for number in range(5)]
        assert raised == [["failing"]] * 5
        assert remembered(service) == ['["u-2"]', '["u-3"]', '["u-4"]']
        assert await alerts(service, "u-4") == []
    async with open_service(tmp_path / "data") as service:
        assert await alerts(service, "u-4") == []
        # Forgotten, so it is raised again.
        assert await alerts(service, "u-0") == ["failing"]


async def test_a_monitor_forgets_whom_it_no_longer_has_to_say_anything_about(
    service: Service,
) -> None:
    await publish(service, FAILING, "sign_in")
    for user, result in (("u-1", "failure"), ("u-2", "failure"), ("u-1", "success")):
        await send(service, type="sign_in", data={"user_id": user, "result": result})
    await purge_account(service.engine, 1)
    assert remembered(service) == ['["u-2"]', '["u-1"]']
    # The cool-down is over, also for what may still come late.
    service.engine.clock = lambda: NOW + 26 * 3_600_000_000
    await purge_account(service.engine, 1)
    assert remembered(service) == ['["u-2"]']


async def test_who_is_alerted_while_others_are_forgotten_stays_remembered(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.purge_alerts._STATES_AT_ONCE", 1)
    await publish(service, FAILING, "sign_in")
    for user in ("u-1", "u-2"):
        for result in ("failure", "success"):
            await send(service, type="sign_in", data={"user_id": user, "result": result})
    engine, later = service.engine, NOW + 26 * 3_600_000_000
    engine.clock = lambda: later

    async def alert_again() -> None:
        sequence = engine.journal.last_appended() + 1
        again = [Transition("sign_in", "failing", ("u-2",), later, True)]
        count_transitions(engine.monitors, 1, sequence, again)
        await settle_transitions(engine, 1, sequence, again)

    await asyncio.gather(purge_states(engine, 1), alert_again())
    assert remembered(service) == ['["u-2"]']


async def test_alerts_are_narrowed_to_a_time_and_a_monitor(shop: Service) -> None:
    for user, hours in (("u-1", 20), ("u-2", 2)):
        for _ in range(3):
            await send(shop, **event(user, timestamp=ago(hours=hours)))

    async def keys(**query: str) -> list[str]:
        listed = (await shop.client.get("/v1/alerts", params=query)).json()
        return [alert["key"][0] for alert in listed["alerts"]]

    assert await keys(since="1d") == ["u-2", "u-1"]
    assert await keys(since="3h", monitor="brute_force", state="open") == ["u-2"]
    assert await keys(since=ago(hours=1)) == []
    assert await keys(monitor="other") == []
    answer = await shop.client.get("/v1/alerts", params={"since": "yesterday"})
    assert errors(answer) == [("since", "invalid_value")]


async def test_alerts_are_read_page_by_page(shop: Service) -> None:
    for user in range(5):
        for _ in range(3):
            await send(shop, **event(f"u-{user}"))
    seen, cursor = [], None
    while True:
        query = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        page = (await shop.client.get("/v1/alerts", params=query)).json()
        seen += [alert["key"][0] for alert in page["alerts"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == ["u-4", "u-3", "u-2", "u-1", "u-0"]


async def test_monitors_of_payments_see_the_decision(service: Service) -> None:
    text = """
event payment
  metric denied = count(payments by merchant.id over 15m where decision.action == "deny")
  metric all_of_them = count(payments by merchant.id over 15m)
  monitor deny_rate "Many denied" when all_of_them >= 4 and denied / all_of_them > 0.5
"""
    assert (await publish(service, text, "payment")).status_code == 201
    await publish(service, "rule r\n  condition large when amount > 100 then deny", "r")
    named = {"bot_behaviour": True, "rule": {"name": "r"}}
    for amount in (1, 200, 200):
        await service.client.post("/v1/payments", json=payment(amount=amount, analyze=named))
    assert (await service.client.get("/v1/alerts")).json()["alerts"] == []
    await service.client.post("/v1/payments", json=payment(amount=200, analyze=named))
    (alert,) = (await service.client.get("/v1/alerts")).json()["alerts"]
    assert alert["monitor"] == "deny_rate"
    assert alert["key"] == ["m-1"]
    assert alert["values"] == {"denied": 3, "all_of_them": 4}


async def test_an_update_can_set_a_monitor_off(service: Service) -> None:
    text = """
event payment
  monitor declines when count(payments by user.id over 1h where status == "failed") >= 2
"""
    assert (await publish(service, text, "payment")).status_code == 201
    for id_ in ("p-1", "p-2"):
        await service.client.post("/v1/payments", json=payment(id=id_))
        await service.client.patch(f"/v1/payments/{id_}", json={"payment": {"status": "failed"}})
    (alert,) = (await service.client.get("/v1/alerts")).json()["alerts"]
    assert alert["values"] == {'count(payments by user.id over 1h where status == "failed")': 2}


async def test_a_payment_monitor_can_t_read_ages(service: Service) -> None:
    text = "event payment\n  monitor fresh when age(payments by user.id) < 1h"
    answer = await publish(service, text, "payment")
    assert errors(answer) == [("payment.rule:2:22", "aggregate-form")]


async def test_a_metric_is_read_now_and_over_the_last_day(shop: Service) -> None:
    for minutes in (5, 10, 130):
        await send(shop, **event(timestamp=ago(minutes=minutes)))
    path = "/v1/event-types/user_authentication/metrics/failures"
    metric = (await shop.client.get(path, params={"key": "u-1"})).json()["metric"]
    assert metric["value"] == 2
    assert [point["value"] for point in metric["course"]][-4:] == [0, 1, 0, 2]
    assert len(metric["course"]) == 25
    assert errors(await shop.client.get(path)) == [("key", "invalid_value")]
    assert (await shop.client.get(f"{path}x", params={"key": "u-1"})).status_code == 404


async def test_a_metric_s_key_is_a_number_of_few_digits(service: Service) -> None:
    text = """
event parcel
  field weight: number required
  metric alike = count(events by weight over 1h)
"""
    assert (await publish(service, text, "parcel")).status_code == 201
    await send(service, type="parcel", data={"weight": 1.5})
    path = "/v1/event-types/parcel/metrics/alike"
    for key, alike in (("1.50", 1), ("15e-1", 1), ("-1.5", 0), ("1e-999999", 0), ("1e37", 0)):
        answer = await service.client.get(path, params={"key": key})
        assert answer.json()["metric"]["value"] == alike
    for key in ("1e38", "1e400000", "1e9999999", "-Infinity", "NaN", "sNaN", "heavy"):
        refused = await service.client.get(path, params={"key": key})
        assert errors(refused) == [("key", "invalid_value")]


async def test_a_breaking_version_needs_to_be_planned(shop: Service) -> None:
    text = SIGN_INS.replace("field device: string", "field device: string required")
    answer = await publish(shop, text)
    assert errors(answer) == [("fields.device", "conflict"), ("breaking", "missing")]
    answer = await publish(shop, text, breaking="true")
    assert errors(answer) == [("fields.device", "conflict"), ("applies_from", "missing")]
    answer = await publish(shop, text, breaking="true", applies_from=ago(hours=1))
    assert errors(answer) == [("applies_from", "out_of_range")]
    answer = await publish(shop, text, breaking="true", applies_from=ago(hours=-1))
    assert answer.status_code == 201


async def test_a_compatible_version_applies_at_once(shop: Service) -> None:
    text = SIGN_INS.replace('"success" | "failure"', '"success" | "failure" | "locked"')
    assert (await publish(shop, text)).status_code == 201
    answer = await send(shop, **event(result="locked"))
    assert answer.json()["event"]["version"] == 2


async def test_events_are_checked_against_the_version_in_force_at_their_time(
    tmp_path: Any,
) -> None:
    async with open_service(tmp_path / "data") as service:
        assert (await publish(service)).status_code == 201
        breaking = SIGN_INS.replace("field device: string", "field device: number required")
        when = ago(minutes=-30)
        answer = await publish(service, breaking, breaking="true", applies_from=when)
        assert answer.status_code == 201
        assert (await send(service, **event())).json()["event"]["version"] == 1
        service.engine.clock = lambda: NOW + 31 * 60 * 1_000_000
        old = await send(service, **event(data={"device": "d-1"}, timestamp=ago(minutes=1)))
        assert old.json()["event"]["version"] == 1
        answer = await send(service, **event())
        assert errors(answer) == [("event.data.device", "missing")]
        new = await send(service, **event(data={"device": 7}))
        assert new.json()["event"]["version"] == 2
        # Both versions count the same failures.
        assert new.json()["event"]["metrics"]["failures"] == 3


async def test_a_field_that_changed_its_type_is_missing_to_programs_of_the_other_version(
    tmp_path: Any,
) -> None:
    rule = """
rule checkout
  condition risky when events.user_authentication.risk_sum[user.id] >= 2 then deny
"""
    async with open_service(tmp_path / "data") as service:
        await publish(service)
        await publish(service, rule, "checkout")
        breaking = SIGN_INS.replace("risk: number", "risk: string").replace(
            "risk_sum = sum(events.risk by user_id over 1h)",
            'high_risks = count(events by user_id over 1h where risk == "high")',
        )
        when = ago(minutes=-1)
        answer = await publish(service, breaking, breaking="true", applies_from=when)
        assert answer.status_code == 201
        await send(service, **event(data={"risk": 2}))
        service.engine.clock = lambda: NOW + 2 * 60 * 1_000_000
        new = await send(service, **event(data={"risk": "high"}))
        assert new.json()["event"]["metrics"]["high_risks"] == 1
        body = payment(analyze={"rule": {"name": "checkout"}})
        decided = (await service.client.post("/v1/payments", json=body)).json()["payment"]
        assert decided["analyses"]["rule"]["condition"]["id"] == "risky"
    async with open_service(tmp_path / "data") as service:
        service.engine.clock = lambda: NOW + 2 * 60 * 1_000_000
        new = await send(service, **event(data={"risk": "high"}))
        assert new.json()["event"]["metrics"]["high_risks"] == 2


async def test_what_is_known_of_monitors_and_metrics_survives_a_restart(tmp_path: Any) -> None:
    folder = tmp_path / "data"
    async with open_service(folder) as service:
        await publish(service)
        for _ in range(3):
            await send(service, **event())
    async with open_service(folder) as service:
        again = (await send(service, **event())).json()["event"]
        assert again["metrics"]["failures"] == 4
        assert again["alerts"] == []
        assert len((await service.client.get("/v1/alerts")).json()["alerts"]) == 1


async def test_without_the_outbox_the_journal_gives_all_alerts_again(tmp_path: Any) -> None:
    folder = tmp_path / "data"
    async with open_service(folder) as service:
        await publish(service)
        for _ in range(3):
            await send(service, **event())
        before = (await service.client.get("/v1/alerts")).json()
    for path in folder.glob("alerts.db*"):
        path.unlink()
    async with open_service(folder) as service:
        assert (await service.client.get("/v1/alerts")).json() == before
        assert (await send(service, **event())).json()["event"]["alerts"] == []


async def test_another_account_sees_nothing_of_it(shop: Service) -> None:
    for _ in range(3):
        await send(shop, **event())
    await shop.account("other")
    async with shop.client_with(await shop.key("other", "payments", "admin", "rules")) as other:
        assert (await other.get("/v1/alerts")).json()["alerts"] == []
        answer = await other.post("/v1/events", json={"event": event()})
        assert errors(answer) == [("event.type", "unknown_event_type")]


async def test_card_numbers_in_texts_are_masked_before_anything_reads_them(shop: Service) -> None:
    await send(shop, **event(id="e-1", data={"device": "card 4111 1111 1111 1111"}))
    entry = await shop.engine.journal.latest(1, 3)
    assert b"1111 1111 1111" not in entry.entries[0].body
