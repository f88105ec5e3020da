"""The account's settings and its audit log over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio


async def change(service: Service, **settings: Any) -> Any:
    return await service.client.put("/v1/account", json={"account": settings})


async def test_the_defaults_are_shown(service: Service) -> None:
    shown = (await service.client.get("/v1/account")).json()["account"]
    assert shown["name"] == "shop"
    assert shown["thresholds"] == {"challenge": 0.5, "deny": 0.85}
    assert (shown["default_rule"], shown["time_zone"]) == (None, "UTC")


async def test_a_changed_threshold_decides_at_once(service: Service) -> None:
    answer = await change(service, thresholds={"challenge": 0, "deny": 0})
    assert answer.json()["account"]["thresholds"] == {"challenge": 0.0, "deny": 0.0}
    created = await service.client.post("/v1/payments", json=payment())
    assert created.json()["payment"]["analyses"]["bot_behaviour"]["action"] == "deny"


async def test_the_default_rule_applies_when_none_is_named(service: Service) -> None:
    text = "rule gate\n  condition any_amount when amount > 0 then challenge\n"
    await service.client.post("/v1/rules/gate/versions?publish=true", content=text)
    await change(service, default_rule="gate")
    created = (await service.client.post("/v1/payments", json=payment())).json()["payment"]
    assert created["analyses"]["rule"]["name"] == "gate"


async def test_all_that_is_wrong_is_named(service: Service) -> None:
    answer = await change(
        service, thresholds={"deny": 2}, time_zone="Mars/North", default_rule="nobody"
    )
    assert answer.status_code == 422
    assert sorted(errors(answer)) == [
        ("account.default_rule", "invalid_value"),
        ("account.thresholds.deny", "out_of_range"),
        ("account.time_zone", "invalid_value"),
    ]


@pytest.mark.parametrize("body", [{}, {"account": 1}, [], {"account": None}])
async def test_a_body_that_is_none_is_refused(shared_service: Service, body: Any) -> None:
    assert (await shared_service.client.put("/v1/account", json=body)).status_code == 422


async def test_the_account_and_its_audit_log_need_the_admin_scope(service: Service) -> None:
    async with service.client_with(await service.key("shop", "payments", "rules")) as client:
        for path in ("/v1/account", "/v1/audit"):
            assert (await client.get(path)).status_code == 403


async def test_each_change_is_in_the_audit_log_with_its_author(service: Service) -> None:
    await change(service, time_zone="America/Sao_Paulo")
    await service.client.put("/v1/lists/blocked", json={"type": "string"})
    await service.client.put("/v1/lists/blocked/entries", json={"entries": [{"value": "u-1"}]})
    log = (await service.client.get("/v1/audit")).json()["audit"]
    assert [(item["action"], item["subject"]) for item in log[:3]] == [
        ("entries_changed", "list blocked"),
        ("list_made", "list blocked"),
        ("settings_changed", "account"),
    ]
    assert log[0]["detail"] == {"action": "put", "count": 1, "values": ["u-1"]}
    assert log[2]["detail"] == {"time_zone": "America/Sao_Paulo"}
    assert all(item["by"].startswith("toll_") for item in log[:3])


async def test_the_audit_log_is_read_in_pages(service: Service) -> None:
    for days in range(100, 110):
        await change(service, retention_days=days)
    whole = (await service.client.get("/v1/audit")).json()["audit"]
    found: list[Any] = []
    cursor = None
    while True:
        query = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await service.client.get("/v1/audit", params=query)).json()
        found += page["audit"]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == whole
    assert len(found) > 10


async def test_the_audit_log_is_narrowed_to_who_did_what_to_what(service: Service) -> None:
    for name in ("blocked", "trusted"):
        await service.client.put(f"/v1/lists/{name}", json={"type": "string"})
        entry = {"entries": [{"value": "u-1"}]}
        await service.client.put(f"/v1/lists/{name}/entries", json=entry)
    whole = (await service.client.get("/v1/audit")).json()["audit"]
    assert len({item["by"] for item in whole}) > 1
    for name in ("by", "action", "subject"):
        for value in {item[name] for item in whole}:
            answer = await service.client.get("/v1/audit", params={name: value, "since": "1d"})
            assert answer.json()["audit"] == [item for item in whole if item[name] == value]
    both = {"action": "entries_changed", "subject": "list blocked", "limit": "1"}
    page = (await service.client.get("/v1/audit", params=both)).json()
    assert [(item["action"], item["subject"]) for item in page["audit"]] == [
        ("entries_changed", "list blocked")
    ]


async def test_an_action_or_kind_that_there_is_not_is_refused_with_those_that_there_are(
    service: Service,
) -> None:
    for name, wrong, known in (
        ("action", "entry_changed", "`entries_changed`"),
        ("kind", "changes", "`change`"),
    ):
        answer = await service.client.get("/v1/audit", params={name: wrong})
        assert errors(answer) == [(name, "invalid_value")]
        assert known in answer.json()["errors"][0]["message"]


async def test_no_secret_is_in_the_audit_log(service: Service) -> None:
    key = await service.key("shop", "payments")
    log = (await service.client.get("/v1/audit")).text
    assert key[:13] in log
    assert key not in log


async def test_one_account_does_not_see_the_changes_of_another(service: Service) -> None:
    await service.account("rival")
    async with service.client_with(await service.key("rival", "admin")) as rival:
        subjects = [item["subject"] for item in (await rival.get("/v1/audit")).json()["audit"]]
    assert "account rival" in subjects
    assert "account shop" not in subjects


@pytest.mark.parametrize(
    ("query", "field"),
    [({"cursor": "x"}, "cursor"), ({"since": "yesterday"}, "since"), ({"limit": "0"}, "limit")],
)
async def test_a_bad_query_is_refused_at_its_parameter(
    shared_service: Service, query: dict[str, str], field: str
) -> None:
    for path in ("/v1/audit", "/v1/decisions"):
        answer = await shared_service.client.get(path, params=query)
        assert answer.status_code == 422
        assert [place for place, _ in errors(answer)] == [field]


async def test_a_whole_number_may_be_written_with_a_point(service: Service) -> None:
    sent = {"account": {"retention_days": 420.0, "clock_skew_ms": 1e3}}
    changed = (await service.client.put("/v1/account", json=sent)).json()["account"]
    assert (changed["retention_days"], changed["clock_skew_ms"]) == (420, 1000)
    for wrong in ("420.5", "1e20", "true"):
        body = f'{{"account": {{"retention_days": {wrong}}}}}'
        refused = await service.client.put("/v1/account", content=body)
        assert errors(refused) == [("account.retention_days", "invalid_type")]
