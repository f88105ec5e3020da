"""Four eyes: what one person proposes another approves, and what somebody does alone is seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from tollkeeper.engine.enter_alerts import recover_alerts
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.end_publications import end_due
from tollkeeper.engine.publish.proposals import Propose
from tollkeeper.engine.registry.changes import Activated
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.tests.api.http.late_proofs import PROMISED, leave_no_time_for_proofs
from tollkeeper.tests.api.http.service import NOW, Service, errors, payment

pytestmark = pytest.mark.anyio

DAY = 86_400_000_000
RULE = "rule gate\n  condition all when amount > {} then deny\n"
PUBLISH = {"name": "gate", "version": 2}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Team:
    """An account whose publishes and thresholds need two people; three of its people."""

    service: Service
    ana: httpx.AsyncClient
    rui: httpx.AsyncClient
    eva: httpx.AsyncClient

    async def active(self) -> Any:
        return (await self.ana.get("/v1/rules/gate")).json()["rule"]["active"]

    async def propose(self, who: httpx.AsyncClient | None = None, **wanted: Any) -> httpx.Response:
        body = {"proposal": {"note": "guessing also by night", **(wanted or {"publish": PUBLISH})}}
        return await (who or self.ana).post("/v1/proposals", json=body)

    async def audit(self) -> Any:
        return (await self.service.client.get("/v1/audit")).json()["audit"]


@asynccontextmanager
async def signed_in(service: Service, name: str, role: str) -> AsyncIterator[httpx.AsyncClient]:
    await service.client.put(f"/v1/users/{name}", json={"user": {"role": role}})
    code = (await service.client.post(f"/v1/users/{name}/links")).json()["link"]["code"]
    sent = {"session": {"code": code}}
    token = (await service.client.post("/v1/sessions", json=sent)).json()["session"]["token"]
    async with service.client_with(token) as client:
        yield client


@pytest.fixture
async def team(service: Service) -> AsyncIterator[Team]:
    path = "/v1/rules/gate/versions"
    await service.client.post(path, content=RULE.format(100), params={"publish": "true"})
    await service.client.post(path, content=RULE.format(90))
    settings = {"account": {"approvals": {"publish": True, "thresholds": True}}}
    assert (await service.client.put("/v1/account", json=settings)).status_code == 200
    async with (
        signed_in(service, "ana", "lead") as ana,
        signed_in(service, "rui", "lead") as rui,
        signed_in(service, "eva", "analyst") as eva,
    ):
        yield Team(service, ana, rui, eva)


async def test_what_one_person_proposes_another_puts_into_force(team: Team) -> None:
    proposed = await team.propose(team.eva)
    assert proposed.status_code == 201, proposed.text
    waiting = proposed.json()["proposal"]
    assert (waiting["state"], waiting["base"], waiting["by"]) == ("waiting", "version 1", "eva")
    assert await team.active() == 1
    approved = await team.rui.post("/v1/proposals/1/approval")
    assert approved.status_code == 200, approved.text
    assert approved.json()["proposal"]["state"] == "approved"
    assert await team.active() == 2
    activated, asked = (await team.audit())[:2]
    assert (activated["action"], activated["by"]) == ("activated", "rui")
    assert activated["detail"]["proposal"] == 1
    assert (asked["action"], asked["by"]) == ("proposed", "eva")
    assert asked["detail"]["note"] == "guessing also by night"


async def test_who_approves_reads_what_was_not_tried_of_a_version(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_no_time_for_proofs(monkeypatch)
    stored = await team.ana.post("/v1/rules/gate/versions", content=PROMISED)
    wanted = {"name": "gate", "version": stored.json()["rule"]["version"]}
    proposed = await team.propose(publish=wanted)
    assert proposed.status_code == 201, proposed.text
    skipped = await team.propose(publish={**wanted, "untested": True})
    assert skipped.status_code == 201, skipped.text
    newest, first = (await team.rui.get("/v1/proposals")).json()["proposals"]
    told, *checked = first["warnings"]
    assert (told["field"], told["type"]) == ("gate.rule:3:3", "untried-must")
    assert told["message"].startswith("1 `must` line was not tried")
    assert (first["untested"], newest["untested"], newest["warnings"]) == (False, True, checked)


async def test_who_approves_reads_what_the_version_is_warned_of(team: Team) -> None:
    text = "rule gate\n  list risky: string\n  condition a when user.id in @risky then deny\n"
    stored = await team.ana.post("/v1/rules/gate/versions", content=text)
    wanted = {"name": "gate", "version": stored.json()["rule"]["version"]}
    proposed = await team.propose(publish=wanted)
    assert proposed.status_code == 201, proposed.text
    (told,) = (await team.rui.get("/v1/proposals/1")).json()["proposal"]["warnings"]
    assert (told["field"], told["type"]) == ("gate.rule:3:20", "empty-list")


async def test_a_rollout_is_proposed_when_the_tests_of_its_version_pass(team: Team) -> None:
    failing = RULE.format(80) + '  test "t" given amount = 5.00 expect deny\n'
    stored = await team.ana.post("/v1/rules/gate/versions", content=failing)
    number = stored.json()["rule"]["version"]
    wanted = {"name": "gate", "version": number, "percent": 10, "by": "user"}
    refused = await team.propose(rollout=wanted)
    assert refused.status_code == 422, refused.text
    assert [each["type"] for each in refused.json()["errors"]] == ["failing-test"]
    assert (await team.rui.get("/v1/proposals")).json()["proposals"] == []
    assert (await team.propose(rollout={**wanted, "version": 2})).status_code == 201


async def test_nobody_approves_alone_by_a_link_that_they_made_for_another(team: Team) -> None:
    keys = team.service.client
    made = await keys.post("/v1/keys", json={"key": {"scopes": ["rules"], "name": "second"}})
    async with team.service.client_with(made.json()["key"]["secret"]) as second:
        for number, who in enumerate((keys, second), 1):
            assert (await team.propose(who)).status_code == 201
            answer = await team.rui.post(f"/v1/proposals/{number}/approval")
            assert errors(answer) == [("approval", "forbidden")]
            assert "made a link that signs `rui` in" in answer.text
    assert await team.active() == 1


async def test_nobody_proposes_by_a_link_that_they_made_and_approves_as_themselves(
    team: Team,
) -> None:
    async with signed_in(team.service, "adm", "admin") as adm:
        made = await adm.post("/v1/keys", json={"key": {"scopes": ["rules"]}})
        code = (await adm.post("/v1/users/ana/links")).json()["link"]["code"]
        started = await adm.post("/v1/sessions", json={"session": {"code": code}})
    async with (
        team.service.client_with(started.json()["session"]["token"]) as as_ana,
        team.service.client_with(made.json()["key"]["secret"]) as own,
    ):
        assert (await team.propose(as_ana)).json()["proposal"]["by"] == "ana"
        answer = await own.post("/v1/proposals/1/approval")
    assert errors(answer) == [("approval", "forbidden")]
    assert await team.active() == 1


async def test_nobody_approves_alone_by_way_of_a_third_person(team: Team) -> None:
    engine = team.service.engine
    (number,) = engine.state.accounts
    makers = {"rui": frozenset({"adm"}), "adm": frozenset({"ana"}), "ana": frozenset({"adm"})}
    account = replace(engine.state.accounts[number], link_makers=makers)
    engine.state = replace(engine.state, accounts={number: account})
    assert (await team.propose()).status_code == 201
    answer = await team.rui.post("/v1/proposals/1/approval")
    assert errors(answer) == [("approval", "forbidden")]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/rules/gate/active", {"version": 2}),
        ("DELETE", "/v1/rules/gate/active", None),
        ("PUT", "/v1/rules/gate/rollout", {"version": 2, "percent": 100, "by": "user"}),
        ("PUT", "/v1/account", {"account": {"thresholds": {"deny": 0.99}}}),
        ("PUT", "/v1/account", {"account": {"default_rule": "gate"}}),
        ("PUT", "/v1/account", {"account": {"retention_days": 1}}),
        ("PUT", "/v1/account", {"account": {"approvals": {"publish": False}}}),
    ],
)
async def test_nobody_gets_round_it(team: Team, method: str, path: str, body: Any) -> None:
    for who in (team.ana, team.service.client):
        answer = await who.request(method, path, json=body)
        assert answer.status_code == 403, answer.text
        assert "propose it" in answer.text
    assert await team.active() == 1


async def test_a_text_published_at_once_is_stored_and_refused(team: Team) -> None:
    path = "/v1/rules/gate/versions?publish=true"
    answer = await team.ana.post(path, content=RULE.format(80))
    assert errors(answer) == [("approval", "forbidden")]
    assert await team.active() == 1


async def test_other_settings_need_nobody_else(team: Team) -> None:
    settings = {"account": {"time_zone": "America/Sao_Paulo"}}
    assert (await team.ana.put("/v1/account", json=settings)).status_code == 200


async def test_nobody_approves_what_is_their_own_or_without_being_somebody(team: Team) -> None:
    await team.propose()
    assert errors(await team.ana.post("/v1/proposals/1/approval")) == [("approval", "forbidden")]
    by_key = await team.service.client.post("/v1/proposals/1/approval")
    assert errors(by_key) == [("approval", "forbidden")]
    assert (await team.eva.post("/v1/proposals/1/approval")).status_code == 403
    assert await team.active() == 1


async def test_a_key_of_a_user_is_the_user(team: Team) -> None:
    from tollkeeper.engine.publish.accounts import CreateKey

    async def key_of(owner: str) -> httpx.AsyncClient:
        verb = CreateKey("shop", ("rules",), owner=owner)
        key = (await verb.perform(team.service.engine, "test", lambda _share: None)).key
        return team.service.client_with(key)

    async with await key_of("ana") as anas, await key_of("rui") as ruis:
        await team.propose(anas)
        assert errors(await team.ana.post("/v1/proposals/1/approval")) == [
            ("approval", "forbidden")
        ]
        assert (await ruis.post("/v1/proposals/1/approval")).status_code == 200


async def test_a_proposal_is_void_once_something_else_is_active(team: Team) -> None:
    await team.propose(team.eva)
    await team.ana.post("/v1/rules/gate/versions", content=RULE.format(80))
    await team.propose(publish={"name": "gate", "version": 3})
    assert (await team.rui.post("/v1/proposals/2/approval")).status_code == 200
    assert errors(await team.rui.post("/v1/proposals/1/approval")) == [("proposal", "conflict")]
    assert errors(await alone(team)) == [("proposal", "conflict")]
    assert await team.active() == 3


async def test_a_proposal_is_over_after_a_week_and_decided_once(team: Team) -> None:
    for _ in range(2):
        await team.propose()
    no = {"refusal": {"reason": "it denies our best customers"}}
    refused = await team.rui.post("/v1/proposals/1/refusal", json=no)
    assert refused.json()["proposal"]["state"] == "refused"
    assert errors(await team.rui.post("/v1/proposals/1/approval")) == [("proposal", "conflict")]
    empty = await team.rui.post("/v1/proposals/2/refusal", json={"refusal": {"reason": " "}})
    assert errors(empty) == [("reason", "invalid_format")]
    team.service.engine.clock = lambda: NOW + 7 * DAY
    async with signed_in(team.service, "rui", "lead") as rui:
        assert errors(await rui.post("/v1/proposals/2/approval")) == [("proposal", "conflict")]


async def test_an_analyst_takes_back_what_is_theirs_and_refuses_nothing_else(team: Team) -> None:
    await team.propose(team.eva)
    await team.propose()
    no = {"refusal": {"reason": "a slip"}}
    assert (await team.eva.post("/v1/proposals/1/refusal", json=no)).status_code == 200
    assert (await team.eva.post("/v1/proposals/2/refusal", json=no)).status_code == 403


async def test_thresholds_rollouts_and_unpublishing_are_approved_as_well(team: Team) -> None:
    await team.propose(settings={"thresholds": {"challenge": 0.4}})
    await team.propose(rollout={"name": "gate", "version": 2, "percent": 10, "by": "user"})
    for number in (1, 2):
        answer = await team.rui.post(f"/v1/proposals/{number}/approval")
        assert answer.status_code == 200, answer.text
    account = (await team.ana.get("/v1/account")).json()["account"]
    assert account["thresholds"]["challenge"] == 0.4
    rule = (await team.ana.get("/v1/rules/gate")).json()["rule"]
    assert rule["rollout"]["percent"] == 10
    await team.propose(unpublish={"name": "gate"})
    assert (await team.rui.post("/v1/proposals/3/approval")).status_code == 200
    assert await team.active() is None


async def test_two_people_lift_the_rule_of_four_eyes(team: Team) -> None:
    await team.propose(settings={"approvals": {"publish": False, "thresholds": False}})
    assert (await team.rui.post("/v1/proposals/1/approval")).status_code == 200
    chosen = await team.ana.put("/v1/rules/gate/active", json={"version": 2})
    assert chosen.status_code == 200


async def alone(team: Team, **terms: str) -> httpx.Response:
    body = {"alone": {"until": "6h", "reason": "card testing", **terms}}
    return await team.ana.post("/v1/proposals/1/alone", json=body)


async def test_who_breaks_the_glass_publishes_for_hours_and_waits_for_a_signature(
    team: Team,
) -> None:
    await team.propose()
    done = (await alone(team)).json()["proposal"]
    assert (done["state"], done["open"], done["reason"]) == ("alone", True, "card testing")
    assert await team.active() == 2
    (seen, *_) = await team.audit()
    assert (seen["action"], seen["by"], seen["detail"]["alone"]) == ("activated", "ana", True)
    (alert,) = (await team.rui.get("/v1/alerts")).json()["alerts"]
    assert (alert["type"], alert["monitor"], alert["key"]) == (
        "rule.published",
        "alone",
        ["rule", "gate", 1],
    )
    assert alert["title"] == "gate v2 was published alone"
    assert (alert["values"]["by"], alert["values"]["reason"]) == ("ana", "card testing")
    own = await team.ana.post("/v1/proposals/1/approval")
    assert errors(own) == [("approval", "forbidden")]
    signed = await team.rui.post("/v1/proposals/1/approval")
    assert signed.json()["proposal"]["state"] == "approved"
    team.service.engine.clock = lambda: NOW + DAY
    await end_due(team.service.engine)
    assert (await team.service.client.get("/v1/rules/gate")).json()["rule"]["active"] == 2


async def test_the_alert_of_a_broken_glass_outlasts_a_lost_list_of_alerts(team: Team) -> None:
    await team.propose()
    await alone(team)
    await team.service.engine.outbox.write(lambda c: c.execute("DELETE FROM alerts"))
    await team.service.engine.outbox.write(lambda c: c.execute("UPDATE noted SET place = 0"))
    await recover_alerts(team.service.engine)
    (alert,) = (await team.rui.get("/v1/alerts")).json()["alerts"]
    assert alert["values"]["reason"] == "card testing"


async def test_what_was_published_alone_ends_when_nobody_signs_it_or_somebody_refuses(
    team: Team,
) -> None:
    await team.propose()
    await alone(team)
    no = {"refusal": {"reason": "no attack"}}
    refused = await team.rui.post("/v1/proposals/1/refusal", json=no)
    assert refused.json()["proposal"]["state"] == "refused"
    assert await team.active() == 1
    await team.propose()
    body = {"alone": {"until": "1h", "reason": "card testing"}}
    await team.ana.post("/v1/proposals/2/alone", json=body)
    team.service.engine.clock = lambda: NOW + DAY // 24
    asked = {"rule": {"name": "gate"}}
    made = await team.service.client.post("/v1/payments", json=payment(analyze=asked))
    assert made.json()["payment"]["analyses"]["rule"]["version"] == 1


@pytest.mark.parametrize(
    ("terms", "wrong"),
    [({"until": "25h"}, ("until", "out_of_range")), ({"reason": ""}, ("reason", "invalid_format"))],
)
async def test_the_glass_is_broken_with_a_reason_and_for_a_day_at_most(
    team: Team, terms: dict[str, str], wrong: tuple[str, str]
) -> None:
    await team.propose()
    assert errors(await alone(team, **terms)) == [wrong]
    assert await team.active() == 1


async def test_only_a_version_that_decides_is_published_alone(team: Team) -> None:
    await team.propose(settings={"thresholds": {"deny": 0.9}})
    assert errors(await alone(team)) == [("proposal", "conflict")]


async def test_a_version_whose_tests_fail_is_not_proposed(team: Team) -> None:
    failing = RULE.format(70) + '\n  test "small"\n    given amount = 1\n    expect deny by all\n'
    stored = await team.ana.post("/v1/rules/gate/versions", content=failing)
    assert stored.status_code == 201, stored.text
    answer = await team.propose(publish={"name": "gate", "version": 3})
    assert errors(answer)[0][1] == "failing-test"
    # Nothing is tried for whoever proposes two things at once.
    answer = await team.propose(publish={"name": "gate", "version": 3}, unpublish={"name": "gate"})
    assert errors(answer)[0][1] == "invalid_value"


@pytest.mark.parametrize(
    "wanted", [{}, {"publish": PUBLISH, "unpublish": {"name": "gate"}}, {"publish": PUBLISH}]
)
async def test_a_proposal_is_one_change_with_a_note(team: Team, wanted: Any) -> None:
    body = {"proposal": {"note": "", **wanted}}
    assert (await team.ana.post("/v1/proposals", json=body)).status_code == 422


async def test_a_proposed_version_of_an_event_type_keeps_the_contract_or_has_its_date(
    team: Team,
) -> None:
    texts = ("field cart: string required", "field basket: string required")
    for text in texts:
        content = f"event sale\n  {text}\n"
        await team.ana.post("/v1/event-types/sale/versions", content=content)
    first = {"name": "sale", "version": 1, "kind": "event_type"}
    await team.propose(publish=first)
    assert (await team.rui.post("/v1/proposals/1/approval")).status_code == 200
    breaking = {**first, "version": 2}
    refused = await team.propose(publish=breaking)
    assert ("breaking", "missing") in errors(refused)
    by_command = Propose("shop", Activated("event", "sale", 2), "by command")
    with pytest.raises(Invalid, match="breaks the contract"):
        await by_command.perform(team.service.engine, "ana", unwatched)
    tomorrow = {**breaking, "breaking": True, "applies_from": show_instant(NOW + DAY)}
    for _ in range(2):
        proposed = await team.propose(publish=tomorrow)
        assert proposed.json()["proposal"]["applies_from"] == tomorrow["applies_from"]
    assert (await team.rui.post("/v1/proposals/2/approval")).status_code == 200
    sale = {"event": {"type": "sale", "data": {"cart": "c-1"}}}
    assert (await team.service.client.post("/v1/events", json=sale)).status_code == 201


async def test_a_version_of_an_event_type_is_not_approved_after_its_date(team: Team) -> None:
    content = "event sale\n  field cart: string required\n"
    await team.ana.post("/v1/event-types/sale/versions", content=content)
    from_ = show_instant(NOW + 1_000_000)
    sale = {"name": "sale", "version": 1, "kind": "event_type", "applies_from": from_}
    assert (await team.propose(publish=sale)).status_code == 201
    team.service.engine.clock = lambda: NOW + 2_000_000
    assert errors(await team.rui.post("/v1/proposals/1/approval")) == [("proposal", "conflict")]


async def test_figures_of_a_backtest_are_kept_with_the_version_that_it_tried(team: Team) -> None:
    from asyncio import sleep

    for number in range(3):
        made = payment(
            id=f"p-{number}", amount=95, analyze={"bot_behaviour": True, "rule": {"name": "gate"}}
        )
        assert (await team.service.client.post("/v1/payments", json=made)).status_code == 201
    body = {"version": PUBLISH, "since": "2026-09-01T00:00:00Z"}
    run = (await team.ana.post("/v1/backtests", json=body)).json()["backtest"]
    early = await team.propose(publish=PUBLISH, backtest=run["id"])
    while run["state"] in ("waiting", "running"):
        await sleep(0.05)
        run = (await team.ana.get(f"/v1/backtests/{run['id']}")).json()["backtest"]
    assert run["state"] == "done", run
    if early.status_code != 201:
        assert errors(early) == [("proposal.backtest", "conflict")]
    other = await team.propose(publish={"name": "gate", "version": 1}, backtest=run["id"])
    assert errors(other) == [("proposal.backtest", "conflict")]
    kept = (await team.propose(publish=PUBLISH, backtest=run["id"])).json()["proposal"]["backtest"]
    assert (kept["payments"], kept["changed"]) == (3, 3)
    assert [each["now"] for each in kept["moved"]] == ["deny"]


async def test_the_account_says_which_settings_another_person_must_approve(team: Team) -> None:
    found = (await team.rui.get("/v1/account")).json()
    assert found["guarded"] == [
        "approvals",
        "default_rule",
        "holdout",
        "retention_days",
        "thresholds",
    ]
    assert (await team.rui.put("/v1/account", json=found)).status_code == 200
