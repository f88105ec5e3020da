"""Lists and tables over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.engine.registry import lists as registry_lists
from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  list blocked: string
  table places by network: country: string
  condition known when user.id in @blocked then deny
  condition abroad when @places[device.ip_address].country == "SE" then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def met(service: Service, **changed: Any) -> str | None:
    answer = await service.client.post("/v1/payments", json=payment(analyze=ASKED, **changed))
    condition = answer.json()["payment"]["analyses"]["rule"]["condition"]
    return None if condition is None else condition["id"]


async def make(service: Service, name: str = "blocked", **spec: Any) -> None:
    answer = await service.client.put(f"/v1/lists/{name}", json=spec or {"type": "string"})
    assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
async def with_list(shared_service: Service) -> Service:
    await make(shared_service)
    return shared_service


async def put(service: Service, *entries: Any, name: str = "blocked") -> Any:
    return await service.client.put(f"/v1/lists/{name}/entries", json={"entries": list(entries)})


async def test_a_list_is_made_once(service: Service) -> None:
    first = await service.client.put("/v1/lists/blocked", json={"type": "string"})
    again = await service.client.put("/v1/lists/blocked", json={"type": "string"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"list": {"name": "blocked", "type": "string"}}
    assert (await service.client.get("/v1/lists")).json() == {
        "lists": [{"name": "blocked", "type": "string"}]
    }


async def test_a_list_of_another_type_is_refused(service: Service) -> None:
    await make(service)
    answer = await service.client.put("/v1/lists/blocked", json={"type": "number"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "type"),
        ({"type": "colour"}, "type"),
        ({"by": "guess", "columns": {"a": "string"}}, "by"),
        ({"by": "value"}, "columns"),
        ({"by": "value", "columns": {"a": "colour"}}, "columns.a"),
    ],
)
async def test_a_bad_list_is_refused_at_its_place(
    shared_service: Service, body: dict[str, Any], place: str
) -> None:
    answer = await shared_service.client.put("/v1/lists/bad", json=body)
    assert answer.status_code == 422
    assert [field for field, _ in errors(answer)] == [place]


async def test_publishing_a_rule_makes_its_lists(service: Service) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert (await service.client.get("/v1/lists/blocked")).json()["list"]["type"] == "string"
    assert (await service.client.get("/v1/lists/places")).json()["list"] == {
        "name": "places",
        "by": "network",
        "columns": {"country": "string"},
    }


async def test_an_entry_decides_from_the_next_payment_on(service: Service) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert await met(service) is None
    assert (await put(service, {"value": "u-1", "note": "chargeback"})).status_code == 200
    assert await met(service) == "known"
    removed = await service.client.request(
        "DELETE", "/v1/lists/blocked/entries", json={"entries": [{"value": "u-1"}]}
    )
    assert removed.json() == {"list": {"name": "blocked", "removed": 1}}
    assert await met(service) is None


async def test_a_row_of_a_table_decides_by_network(service: Service) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    row = {"value": "203.0.113.0/24", "columns": {"country": "SE"}}
    assert (await put(service, row, name="places")).status_code == 200
    assert await met(service) == "abroad"


async def test_an_expired_entry_decides_no_more(service: Service) -> None:
    await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    await put(service, {"value": "u-1", "expires_at": "2026-09-10T00:00:00Z"})
    assert await met(service) is None


async def test_an_end_that_no_answer_could_show_is_refused(service: Service) -> None:
    await make(service)
    put_ = await put(service, {"value": "u-1", "expires_at": "9999-12-31T23:59:59-03:00"})
    assert errors(put_) == [("entries[0].expires_at", "invalid_format")]
    await put(service, {"value": "u-1", "expires_at": "9999-12-31T23:59:59Z"})
    assert (await service.client.get("/v1/lists/blocked/entries")).status_code == 200


async def test_entries_are_read_in_pages(service: Service) -> None:
    await make(service)
    await put(service, *({"value": f"v-{number:04}"} for number in range(1203)))
    found: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "500"} | ({"cursor": cursor} if cursor else {})
        page = (await service.client.get("/v1/lists/blocked/entries", params=query)).json()
        found += [entry["value"] for entry in page["entries"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == [f"v-{number:04}" for number in range(1203)]


@pytest.mark.parametrize(
    ("spec", "entries", "value", "found"),
    [
        ({"type": "string"}, ["d-1", "d-10"], "d-1", ["d-1"]),
        ({"type": "number"}, ["7", "70"], "7.00", ["7"]),
        (
            {"type": "ip"},
            ["203.0.0.0/16", "203.0.113.0/24", "203.0.113.7", "203.0.114.0/24"],
            "203.0.113.7",
            ["203.0.0.0/16", "203.0.113.0/24", "203.0.113.7"],
        ),
        (
            {"type": "ip"},
            ["203.0.0.0/16", "203.0.113.0/24", "203.0.113.0"],
            "203.0.113.0/24",
            ["203.0.0.0/16", "203.0.113.0/24"],
        ),
        (
            {"by": "prefix", "columns": {"country": "string"}},
            ["4", "4111", "41111", "5"],
            "411100",
            ["4", "4111"],
        ),
        ({"type": "string"}, ["d-1"], "d-2", []),
    ],
)
async def test_what_holds_a_value_is_found_without_reading_the_list(
    service: Service, spec: dict[str, Any], entries: list[str], value: str, found: list[str]
) -> None:
    await make(service, **spec)
    await put(service, *({"value": each} for each in entries), {"value": entries[0]})
    values: list[str] = []
    cursor: str | None = None
    while True:
        query = {"value": value, "limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await service.client.get("/v1/lists/blocked/entries", params=query)).json()
        values += [entry["value"] for entry in page["entries"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert values == sorted(found)


async def test_a_value_that_no_entry_of_the_list_can_hold_is_refused(service: Service) -> None:
    await make(service, type="ip")
    answer = await service.client.get("/v1/lists/blocked/entries", params={"value": "d-1"})
    assert errors(answer) == [("value", "invalid_value")]


async def test_bad_entries_are_all_named_and_none_is_kept(service: Service) -> None:
    await make(service, type="ip")
    answer = await put(service, {"value": "10.0.0.1"}, {"value": "10.0.0.1/24"}, {"value": 5}, 7)
    assert answer.status_code == 422
    assert [field for field, _ in errors(answer)] == [
        "entries[1].value",
        "entries[2].value",
        "entries[3]",
    ]
    assert (await service.client.get("/v1/lists/blocked/entries")).json()["entries"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("GET", "/v1/lists/nobody", None, "list"),
        ("GET", "/v1/lists/nobody/entries", None, "list"),
        ("PUT", "/v1/lists/nobody/entries", {"entries": [{"value": "a"}]}, "list"),
        ("DELETE", "/v1/lists/nobody/entries", {"entries": [{"value": "a"}]}, "list"),
        ("DELETE", "/v1/lists/blocked/entries", {"entries": ["gone"]}, "entries[0].value"),
    ],
)
async def test_an_unknown_list_or_entry_is_404(
    with_list: Service, method: str, path: str, body: Any, field: str
) -> None:
    answer = await with_list.client.request(method, path, json=body)
    assert answer.status_code == 404
    assert errors(answer) == [(field, "not_found")]


@pytest.mark.parametrize("limit", ["0", "501", "-1", "many", "²"])
async def test_a_bad_limit_is_refused_at_its_place(with_list: Service, limit: str) -> None:
    answer = await with_list.client.get("/v1/lists/blocked/entries", params={"limit": limit})
    assert answer.status_code == 422
    assert [field for field, _ in errors(answer)] == ["limit"]


async def test_lists_need_the_scope_for_rules(service: Service) -> None:
    async with service.client_with(await service.key("shop", "payments")) as client:
        for method, path in (("GET", "/v1/lists"), ("PUT", "/v1/lists/a/entries")):
            assert (await client.request(method, path)).status_code == 403


async def test_one_account_does_not_see_the_lists_of_another(service: Service) -> None:
    await make(service)
    await service.account("rival")
    async with service.client_with(await service.key("rival", "rules")) as rival:
        assert (await rival.get("/v1/lists/blocked/entries")).status_code == 404


async def test_an_edit_leaves_what_is_published_as_it_was_compiled(service: Service) -> None:
    rule = (
        "rule gate\n  list blocked: string\n  condition listed when user.id in @blocked then deny\n"
    )
    for name in ("gate", "door"):
        text = rule.replace("gate", name)
        answer = await service.client.post(f"/v1/rules/{name}/versions?publish=true", content=text)
        assert answer.status_code == 201, answer.text
    before = service.engine.active[1]
    many = {"entries": [{"value": f"u-{number}"} for number in range(1000)]}
    assert (await service.client.put("/v1/lists/blocked/entries", json=many)).status_code == 200
    after = service.engine.active[1]
    assert all(after.rules[of] is rule for of, rule in before.rules.items())
    assert before.environment.lists["blocked"].contains("u-999", 0) is False
    assert after.environment.lists["blocked"].contains("u-999", 0) is True
    gone = {"entries": [{"value": f"u-{number}"} for number in range(500, 1000)]}
    removed = await service.client.request("DELETE", "/v1/lists/blocked/entries", json=gone)
    assert removed.status_code == 200
    left = service.engine.active[1].environment.lists["blocked"]
    assert [left.contains(f"u-{number}", 0) for number in (499, 500)] == [True, False]


async def test_an_account_holds_so_many_entries_and_no_more(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_lists, "MAX_ENTRIES", 2)
    for name in ("one", "two"):
        await service.client.put(f"/v1/lists/{name}", json={"type": "string"})
    for name, value, status in (("one", "a", 200), ("two", "b", 200), ("one", "c", 422)):
        sent = {"entries": [{"value": value}]}
        answer = await service.client.put(f"/v1/lists/{name}/entries", json=sent)
        assert answer.status_code == status, answer.text
    assert errors(answer) == [("entries", "out_of_range")]
