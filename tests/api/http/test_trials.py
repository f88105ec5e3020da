"""Shadows and rollouts over HTTP: what they show, and that a shadow never reaches a decision."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from tollkeeper.engine import shadow_queue
from tollkeeper.engine.instants import MINUTE, show_instant
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.shadows import report as shadow_reports
from tollkeeper.engine.shadows.record import drain
from tollkeeper.tests.api.http.service import NOW, Service, errors, payment

pytestmark = pytest.mark.anyio

ACTIVE = "rule gate\n  condition large when amount > 100.00 then challenge\n"
TRIAL = """rule gate
  condition busy when count(payments by user.id over 1h) > 2 then deny
  condition large when amount > 100.00 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def store(service: Service, text: str, query: str = "") -> int:
    answer = await service.client.post(f"/v1/rules/gate/versions{query}", content=text)
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["rule"]["version"]
    return number


@pytest.fixture(scope="module")
async def with_rule(shared_service: Service) -> Service:
    await store(shared_service, ACTIVE, "?publish=true")
    return shared_service


async def with_shadow(service: Service) -> None:
    await store(service, ACTIVE, "?publish=true")
    await store(service, TRIAL)
    answer = await service.client.put("/v1/rules/gate/shadow", json={"version": 2})
    assert answer.status_code == 200, answer.text


async def create(service: Service, id_: str, **changed: Any) -> dict[str, Any]:
    body = payment(id=id_, **({"analyze": ASKED} | changed))
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text
    analyses: dict[str, Any] = answer.json()["payment"]["analyses"]
    return analyses


async def report(service: Service) -> dict[str, Any]:
    await drain(service.engine)
    found: dict[str, Any] = (await service.client.get("/v1/rules/gate/shadow")).json()["shadow"]
    return found


def recorded(service: Service) -> list[Any]:
    batches = service.engine.journal.replay(kinds=(Kind.SHADOW,))
    return [entry for batch in batches for entry in batch]


async def test_a_shadow_is_recorded_and_never_applied(service: Service) -> None:
    await with_shadow(service)
    for number in range(4):
        analyses = await create(service, f"p-{number}")
        assert analyses["rule"]["version"] == 1
        assert analyses["bot_behaviour"]["action"] == "challenge"
    found = await report(service)
    assert (found["evaluated"], found["failed"], found["skipped"], found["changed"]) == (4, 0, 0, 2)
    (turn,) = found["turns"]
    assert (turn["was"], turn["would_be"], turn["count"]) == ("challenge", "deny", 2)
    assert [example["payment"] for example in turn["examples"]] == ["p-3", "p-2"]
    assert turn["examples"][0]["would"]["condition"] == "busy"


async def test_a_shadows_windows_are_filled_before_it_begins(service: Service) -> None:
    await store(service, ACTIVE, "?publish=true")
    for number in range(3):
        await create(service, f"before-{number}")
    await with_shadow(service)
    await create(service, "p-0")
    assert (await report(service))["changed"] == 1


async def test_a_shadow_of_a_name_without_an_active_version_is_evaluated(service: Service) -> None:
    await store(service, TRIAL)
    await service.client.put("/v1/rules/gate/shadow", json={"version": 1})
    analyses = await create(service, "p-0")
    assert analyses["rule"] is None
    assert (await report(service))["evaluated"] == 1


async def test_a_scorecard_on_trial_is_evaluated_beside_the_shipped_one(service: Service) -> None:
    text = "scorecard bot_behaviour\n  baseline 0.95\n  signal any_payment adds 0.1\n"
    stored = await service.client.post("/v1/scorecards/bot_behaviour/versions", content=text)
    assert stored.status_code == 201, stored.text
    await service.client.put("/v1/scorecards/bot_behaviour/shadow", json={"version": 1})
    analyses = await create(service, "p-0", analyze={"bot_behaviour": True})
    await drain(service.engine)
    found = (await service.client.get("/v1/scorecards/bot_behaviour/shadow")).json()["shadow"]
    (turn,) = found["turns"]
    assert (turn["was"], turn["would_be"]) == (analyses["bot_behaviour"]["action"], "deny")


async def test_a_report_reads_the_newest_records_alone_and_says_since_when(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_reports, "MOST_READ", 4)
    monkeypatch.setattr(reads, "PART", 2)
    await with_shadow(service)
    for number in range(4):
        await create(service, f"p-{number}")
    assert (await report(service))["since"] is None
    for number in range(4, 12):
        await create(service, f"p-{number}")
    read: list[Entry] = []
    entry_of = Entry._make

    def make(row: Any) -> Entry:
        read.append(entry_of(row))
        return read[-1]

    monkeypatch.setattr(Entry, "_make", make)
    found = await report(service)
    assert (found["evaluated"], found["changed"]) == (4, 4)
    assert found["since"] == show_instant(NOW)
    (turn,) = found["turns"]
    assert [example["payment"] for example in turn["examples"]] == ["p-11", "p-10", "p-9"]
    # One more tells that there are more.
    assert [entry.kind for entry in read] == 5 * [Kind.SHADOW]


async def test_a_trial_that_has_ended_is_reported_as_before_however_many_shadows_came_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_reports, "MOST_READ", 3)
    await with_shadow(service)
    for number in range(3):
        await create(service, f"p-{number}")
    await drain(service.engine)
    ended = service.engine.clock()
    assert (await service.client.delete("/v1/rules/gate/shadow")).status_code == 200
    service.engine.clock = lambda: ended + 2 * MINUTE
    await store(service, TRIAL.replace("> 2", "> 3"))
    await service.client.put("/v1/rules/gate/shadow", json={"version": 3})
    for number in range(3, 9):
        await create(service, f"p-{number}")
    assert (await report(service))["evaluated"] == 3
    account = service.engine.state.accounts[1]

    def of_version(number: int) -> tuple[int, int, str | None]:
        found = shadow_reports.shadow_report(
            service.engine.journal, account, "rule", "gate", number
        )
        return found.evaluated, found.changed, found.since

    assert of_version(2) == (3, 1, None)
    assert of_version(1) == (0, 0, None)


def broken(service: Service, decide: Any) -> None:
    """The shadow in force, with another function in the place of its own."""
    active = service.engine.active[1]
    (shadow,) = active.shadows
    loaded = replace(shadow.loaded, decide=decide)
    service.engine.active[1] = replace(active, shadows=(shadow._replace(loaded=loaded),))


async def test_a_shadow_that_fails_is_recorded_as_failed_and_changes_nothing(
    service: Service,
) -> None:
    await with_shadow(service)

    def fail(*_arguments: object) -> int:
        raise RuntimeError("planted")

    broken(service, fail)
    analyses = await create(service, "p-0")
    assert analyses["bot_behaviour"]["action"] == "challenge"
    found = await report(service)
    assert (found["evaluated"], found["failed"], found["changed"]) == (1, 1, 0)


async def test_a_shadow_whose_keys_fail_changes_nothing(service: Service) -> None:
    await with_shadow(service)

    def fail(_facts: object) -> Any:
        raise RuntimeError("planted")

    active = service.engine.active[1]
    (shadow,) = active.shadows
    loaded = replace(shadow.loaded, reading=replace(shadow.loaded.reading, keys=fail))
    service.engine.active[1] = replace(active, shadows=(shadow._replace(loaded=loaded),))
    assert (await create(service, "p-0"))["bot_behaviour"]["action"] == "challenge"
    assert (await report(service))["failed"] == 1


async def test_a_shadow_whose_windows_are_not_whole_changes_nothing(service: Service) -> None:
    await with_shadow(service)
    await service.engine.windows.keep(1, [])
    scorecard = [each.reading for each in service.engine.active[1].scorecards.values()]
    assert any(reading.plan.windows for reading in scorecard)
    active = service.engine.active[1]
    only_the_shadow_reads = replace(active, scorecards={0: _without_windows(active.scorecards[0])})
    service.engine.active[1] = only_the_shadow_reads
    assert (await create(service, "p-0"))["bot_behaviour"]["action"] == "challenge"
    assert (await report(service))["failed"] == 1


def _without_windows(scorecard: Any) -> Any:
    plan = replace(scorecard.reading.plan, series=(), windows=())
    return replace(
        scorecard, reading=replace(scorecard.reading, plan=plan), score=lambda *_given: 10
    )


async def test_a_slow_shadow_keeps_nobody_waiting_and_is_skipped_beyond_the_queue(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_queue, "QUEUE_LIMIT", 3)
    await with_shadow(service)
    begun, released = threading.Event(), threading.Event()

    def wait(*_arguments: object) -> int:
        begun.set()
        released.wait()
        return -1

    broken(service, wait)
    try:
        await create(service, "p-0")
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for number in range(1, 10):
            analyses = await create(service, f"p-{number}")
            assert analyses["bot_behaviour"]["action"] == "challenge"
        assert recorded(service) == []
    finally:
        released.set()
    await create(service, "last")
    found = await report(service)
    assert (found["evaluated"], found["skipped"]) in ((5, 6), (4, 7))


async def test_a_cleared_shadow_is_evaluated_no_more(service: Service) -> None:
    await with_shadow(service)
    assert (await service.client.delete("/v1/rules/gate/shadow")).status_code == 200
    await create(service, "p-0")
    assert recorded(service) == []
    answer = await service.client.get("/v1/rules/gate/shadow")
    assert (answer.status_code, errors(answer)) == (404, [("shadow", "not_found")])


async def test_the_decision_with_a_shadow_is_the_one_without(service: Service) -> None:
    """Recorded to the last value: what was read, what was lost, what was met."""
    await service.account("twin")
    await store(service, ACTIVE, "?publish=true")
    for number in range(4):
        await create(service, f"p-{number}", amount=50.0 * number)
    async with service.client_with(await service.key("twin", "payments", "rules")) as client:
        service.client = client
        await with_shadow(service)
        for number in range(4):
            await create(service, f"p-{number}", amount=50.0 * number)
    for number in range(4):
        alone, beside = [
            (await service.engine.journal.states(account, f"p-{number}"))[0].outcome
            for account in (1, 2)
        ]
        assert alone == beside


@pytest.mark.parametrize("trial", ["shadow", "rollout"])
@pytest.mark.parametrize(
    ("method", "path", "version", "status", "field"),
    [
        ("PUT", "nobody", 1, 404, "name"),
        ("PUT", "gate", 9, 404, "version"),
        ("DELETE", "nobody", None, 404, "name"),
        ("PUT", "gate", "x", 422, "version"),
    ],
)
async def test_what_is_not_there_or_wrong_is_named(
    with_rule: Service, trial: str, method: str, path: str, version: Any, status: int, field: str
) -> None:
    body = {"version": version} | ({"percent": 5, "by": "user"} if trial == "rollout" else {})
    answer = await with_rule.client.request(method, f"/v1/rules/{path}/{trial}", json=body)
    assert answer.status_code == status
    assert [place for place, _ in errors(answer)] == [field]


async def test_a_rollout_gives_its_share_of_keys_the_other_version(service: Service) -> None:
    await store(service, ACTIVE, "?publish=true")
    await store(service, TRIAL)
    seen: dict[str, set[int]] = {}
    for percent in (0, 30, 60, 100):
        body = {"version": 2, "percent": percent, "by": "user"}
        answer = await service.client.put("/v1/rules/gate/rollout", json=body)
        assert answer.json() == {"rule": {"name": "gate", "rollout": body, "warnings": []}}
        shown = (await service.client.get("/v1/rules/gate")).json()["rule"]
        assert shown["rollout"] == body
        share = 0
        for number in range(40):
            user = f"u-{number}"
            analyses = await create(service, f"{percent}-{number}", user={"id": user})
            version = analyses["rule"]["version"]
            assert version == 2 or 2 not in seen.get(user, set()), "a key moved back"
            seen.setdefault(user, set()).add(version)
            share += version == 2
        assert share == {0: 0, 100: 40}.get(percent, share)
        assert abs(share - 40 * percent / 100) <= 12
    assert (await service.client.delete("/v1/rules/gate/rollout")).status_code == 200
    assert (await create(service, "after"))["rule"]["version"] == 1


async def test_a_rollout_needs_a_percentage_a_key_and_an_active_version(service: Service) -> None:
    await store(service, ACTIVE)
    wrong = {"version": 1, "percent": 101, "by": "colour"}
    answer = await service.client.put("/v1/rules/gate/rollout", json=wrong)
    assert sorted(errors(answer)) == [("by", "invalid_value"), ("percent", "out_of_range")]
    unpublished = {"version": 1, "percent": 10, "by": "user"}
    answer = await service.client.put("/v1/rules/gate/rollout", json=unpublished)
    assert (answer.status_code, errors(answer)) == (409, [("name", "conflict")])


async def test_trials_need_the_scope_for_rules(service: Service) -> None:
    async with service.client_with(await service.key("shop", "payments")) as client:
        for method in ("PUT", "DELETE"):
            for trial in ("shadow", "rollout"):
                answer = await client.request(method, f"/v1/rules/gate/{trial}")
                assert answer.status_code == 403


FAILING = ACTIVE + '  test "large" given amount = 200.00 expect deny\n'
"""It takes a version that fails its own test."""


async def test_a_version_is_rolled_out_when_its_tests_pass(service: Service) -> None:
    await store(service, ACTIVE, "?publish=true")
    number = await store(service, FAILING)
    sent = {"version": number, "percent": 10, "by": "user"}
    refused = await service.client.put("/v1/rules/gate/rollout", json=sent)
    assert (refused.status_code, errors(refused)) == (422, [("gate.rule:3:3", "failing-test")])
    assert (await service.client.get("/v1/rules/gate")).json()["rule"]["rollout"] is None
    passing = await store(service, FAILING.replace("deny", "challenge"))
    made = await service.client.put("/v1/rules/gate/rollout", json=sent | {"version": passing})
    assert (made.status_code, made.json()["rule"]["warnings"]) == (200, [])


async def test_going_on_with_a_rollout_or_back_to_a_version_runs_no_tests(service: Service) -> None:
    await store(service, FAILING, "?publish=true&untested=true")
    await store(service, ACTIVE, "?publish=true")
    for percent in (10, 20):
        sent = {"version": 1, "percent": percent, "by": "user"}
        made = await service.client.put("/v1/rules/gate/rollout", json=sent)
        assert made.status_code == 200, made.text


async def test_who_rolls_a_version_out_reads_what_is_not_proved_of_it(service: Service) -> None:
    await store(service, ACTIVE, "?publish=true")
    slow = "  must when avg(transactions.duration) > 10000 never deny\n"
    number = await store(service, ACTIVE + slow)
    sent = {"version": number, "percent": 10, "by": "user"}
    made = await service.client.put("/v1/rules/gate/rollout", json=sent)
    (told,) = made.json()["rule"]["warnings"]
    assert (told["field"], told["type"]) == ("gate.rule:3:3", "unproved-must")
    assert "over transactions; no time proves it" in told["message"]
