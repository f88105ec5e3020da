"""Publishing over HTTP: a text's own tests run first, and what it lacks is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.engine.offline.testing import publishable
from tollkeeper.engine.publish import activate
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.tests.api.http.late_proofs import PROMISED, leave_no_time_for_proofs
from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

FAILING = """rule gate
  condition large when amount > 100.00 then challenge
  test "large payments are denied" given amount = 500.00 expect deny
"""
PASSING = FAILING.replace("expect deny", "expect challenge")


COMPILED_BESIDE = """rule gate
  list blocked: string
  let busy = count(payments by user.id over 1h)
  condition listed when user.id in @blocked then deny
  condition odd when user.id matches /^odd/ then challenge
  condition many when busy > 2 then deny
"""


async def store(service: Service, text: str, **query: Any) -> httpx.Response:
    return await service.client.post("/v1/rules/gate/versions", content=text, params=query)


async def audited(service: Service, action: str) -> list[dict[str, Any]]:
    items = (await service.client.get("/v1/audit")).json()["audit"]
    return [item["detail"] for item in items if item["action"] == action]


async def test_a_text_whose_own_test_fails_is_not_published_and_not_stored(
    service: Service,
) -> None:
    refused = await store(service, FAILING, publish="true")
    assert refused.status_code == 422
    assert errors(refused) == [("gate.rule:3:3", "failing-test")]
    assert "expected deny, came out challenge by large" in refused.json()["errors"][0]["message"]
    assert (await service.client.get("/v1/rules/gate")).status_code == 404
    assert (await store(service, PASSING, publish="true")).json()["rule"]["active"] is True
    assert await audited(service, "activated") == [{"version": 1}]


async def test_what_is_published_untested_is_told_in_the_audit(service: Service) -> None:
    answer = await store(service, FAILING, publish="true", untested="true")
    assert answer.json()["rule"]["active"] is True
    assert await audited(service, "activated") == [{"version": 1, "untested": True}]


async def test_a_draft_is_tested_when_it_is_made_active_and_not_when_gone_back_to(
    service: Service,
) -> None:
    assert (await store(service, FAILING)).status_code == 201
    active = "/v1/rules/gate/active"
    refused = await service.client.put(active, json={"version": 1})
    assert errors(refused) == [("gate.rule:3:3", "failing-test")]
    chosen = {"version": 1, "untested": True}
    assert (await service.client.put(active, json=chosen)).status_code == 200
    await store(service, PASSING, publish="true")
    assert (await service.client.put(active, json={"version": 1})).status_code == 200


async def test_a_test_reads_no_file_of_the_service(service: Service) -> None:
    text = PASSING.replace("given amount = 500.00", 'given payment "/etc/hostname"')
    refused = await store(service, text, publish="true")
    assert errors(refused) == [("gate.rule:3:3", "failing-test")]
    assert "no file came with the text" in refused.json()["errors"][0]["message"]


async def test_tests_run_among_the_definitions_that_the_account_has_published(
    service: Service,
) -> None:
    definitions = "definitions own\n  let large = amount > 100.00\n"
    await service.client.post(
        "/v1/definitions/own/versions", content=definitions, params={"publish": "true"}
    )
    text = PASSING.replace("rule gate", "rule gate\n  use own").replace("amount > 100.00", "large")
    assert (await store(service, text, publish="true")).status_code == 201


async def test_lists_without_entries_and_missing_rates_are_told(service: Service) -> None:
    text = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition large when amount_in("USD") > 100.00 then challenge
"""
    told = (await store(service, text, publish="true")).json()["rule"]["warnings"]
    assert [(each["field"], each["type"]) for each in told] == [
        ("gate.rule:3:24", "empty-list"),
        ("gate.rule:4:24", "no-rates"),
    ]
    await service.client.put("/v1/account", json={"account": {"rates": {"BRL": {"USD": "0.18"}}}})
    entries = {"entries": [{"value": "u-1"}]}
    await service.client.put("/v1/lists/blocked/entries", json=entries)
    again = await service.client.put("/v1/rules/gate/active", json={"version": 1})
    assert again.json()["rule"]["warnings"] == []


KEPT = PROMISED.replace(
    "  condition small", "  condition tiny when amount < 5.00 then allow\n  condition small"
)


async def test_a_text_that_breaks_what_must_hold_is_refused_with_its_payment(
    service: Service,
) -> None:
    refused = await store(service, PROMISED, publish=True)
    assert (refused.status_code, errors(refused)) == (422, [("gate.rule:3:3", "broken-must")])
    [error] = refused.json()["errors"]
    assert error["message"].startswith("`small payments are never denied` does not hold: amount = ")
    assert (await store(service, KEPT, publish=True)).status_code == 201
    assert (await store(service, PROMISED, publish=True, untested=True)).status_code == 201


async def test_what_must_hold_and_was_not_tried_in_time_is_named_and_stands_in_nobodys_way(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishable, "_NAMED", 2)
    leave_no_time_for_proofs(monkeypatch)
    text = PROMISED + 2 * "  must when amount < 5.00 never deny\n"
    stored = await store(service, text, publish=True)
    assert stored.status_code == 201
    warnings = stored.json()["rule"]["warnings"]
    (told,) = [each for each in warnings if each["type"] == "untried-must"]
    assert told["field"] == "gate.rule:3:3"
    assert told["message"].startswith(
        "3 `must` lines were not tried in 0 seconds: line 3, 4 and 1 more"
    )


async def test_what_must_hold_and_is_not_proved_is_said_with_what_helps(service: Service) -> None:
    text = "rule gate\n" + "".join(
        f'  must "m{each}" when avg(transactions.duration) > {each} never allow\n'
        for each in range(publishable._NAMED + 2)
    )
    stored = await store(service, text, publish=True)
    assert stored.status_code == 201, stored.text
    told = [w for w in stored.json()["rule"]["warnings"] if w["type"] == "unproved-must"]
    assert len(told) == publishable._NAMED + 1
    assert told[-1]["message"].startswith("2 `must` lines were not proved either: line ")
    assert told[0]["field"] == "gate.rule:2:3"
    assert told[0]["message"] == (
        "`m0` is not proved: `m0` reads a mean, or a total of doubles, over transactions; "
        "no time proves it: say it in other words, or write a test of each case that matters"
    )


def test_without_a_solver_what_must_hold_is_named_as_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishable, "find_spec", lambda _name: None)
    file = tmp_path / "gate.rule"
    file.write_text(PROMISED)
    (told,) = publishable.try_file(file, Thresholds())
    assert (told.code, told.severity, told.help) == (
        "untried-must",
        "warning",
        "`toll prove` tries all",
    )
    assert told.message == (
        "1 `must` line was not tried here, which needs the extra `prove`: line 3"
    )


async def test_what_must_hold_counts_the_account_s_thresholds(service: Service) -> None:
    text = 'rule gate\n  must "low scores are never denied" when score < 0.50 never deny\n'
    assert (await store(service, text, publish=True)).status_code == 201
    lower = {"account": {"thresholds": {"challenge": 0.2, "deny": 0.4}}}
    changed = await service.client.put("/v1/account", json=lower)
    assert changed.status_code == 200, changed.text
    refused = await store(service, text + "\n# again\n", publish=True)
    assert errors(refused) == [("gate.rule:2:3", "broken-must")]


async def test_a_service_decides_by_what_the_process_beside_it_compiled(service: Service) -> None:
    service.engine.run_in_worker = service.jobs.run_in_worker
    answer = await store(service, COMPILED_BESIDE, publish="true")
    assert answer.status_code == 201, answer.text
    assert [each["type"] for each in answer.json()["rule"]["warnings"]] == ["empty-list"]
    assert (await store(service, "rule gate\n  condition")).status_code == 422
    entries = {"entries": [{"value": "bad"}]}
    assert (await service.client.put("/v1/lists/blocked/entries", json=entries)).is_success
    said = []
    for user in ("bad", "odd-1", "u", "u", "u"):
        analyze = {"bot_behaviour": True, "rule": {"name": "gate"}}
        body = payment(user={"id": user}, analyze=analyze)
        paid = (await service.client.post("/v1/payments", json=body)).json()["payment"]
        met = paid["analyses"]["rule"]["condition"]
        said.append(met and met["id"])
    assert said == ["listed", "odd", None, None, "many"]


async def test_what_all_versions_in_use_count_of_a_payment_is_bounded(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await store(service, COMPILED_BESIDE, publish="true")).status_code == 201
    in_use = service.engine.active[service.engine.state.accounts[1].number].compiled()
    spent = sum(each.cost for each in in_use.values())
    monkeypatch.setattr(activate, "MAX_COUNTING", spent)
    further = COMPILED_BESIDE.replace("by user.id", "by device.ip_address").replace("gate", "door")
    sent = {"content": further, "params": {"publish": "true"}}
    refused = await service.client.post("/v1/rules/door/versions", **sent)
    assert refused.status_code == 409
    assert errors(refused) == [("version", "conflict")]
    assert (await service.client.delete("/v1/rules/gate/active")).status_code < 300
    assert (await service.client.post("/v1/rules/door/versions", **sent)).json()["rule"]["active"]
