"""The test account: apart from the live one, with its rules, and outcomes that can be forced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tollkeeper.api.http import forced_outcomes
from tollkeeper.api.http.error_answers import STATUSES
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.privacy.deletion import DeleteAccount
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.accounts import CreateKey, RevokeKey, SuspendAccount
from tollkeeper.engine.registry.errors import Forbidden
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule
from tollkeeper.tests.api.http.service import NOW, Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

TEXT = {"content-type": "text/plain"}
RULE = """rule checkout
  list trusted: string
  let uses = count(payments by user.id over 1h)
  condition known when user.id in @trusted then allow
  condition busy when uses > 1 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "checkout"}}


@pytest.fixture
async def test_key(service: Service) -> str:
    made = await CreateKey("shop", ("admin",), test=True).perform(service.engine, "test", _ignore)
    assert made.key is not None
    return made.key


@pytest.fixture
async def test_client(service: Service, test_key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with service.client_with(test_key) as client:
        yield client


def _ignore(_share: float) -> None:
    pass


def forcing(**asked: Any) -> dict[str, Any]:
    return payment(metadata={"toll_test": asked})


async def condition(client: httpx.AsyncClient) -> str | None:
    answer = await client.post("/v1/payments", json=payment(analyze=ASKED))
    met = answer.json()["payment"]["analyses"]["rule"]["condition"]
    return None if met is None else str(met["id"])


async def test_payments_and_windows_of_the_test_account_are_apart(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    await service.client.post(
        "/v1/rules/checkout/versions?publish=true", content=RULE, headers=TEXT
    )
    assert [await condition(service.client) for _ in range(2)] == [None, "busy"]
    assert [await condition(test_client) for _ in range(2)] == [None, "busy"]
    await service.client.post("/v1/payments", json=payment(id="p-1"))
    assert (await test_client.get("/v1/payments/p-1")).status_code == 404
    assert (await test_client.post("/v1/payments", json=payment(id="p-1"))).status_code == 201


async def test_lists_of_the_test_account_are_its_own(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    await service.client.post(
        "/v1/rules/checkout/versions?publish=true", content=RULE, headers=TEXT
    )
    entries = {"entries": [{"value": "u-1"}]}
    put = await test_client.put("/v1/lists/trusted/entries", json=entries)
    assert put.status_code == 200, put.text
    assert await condition(test_client) == "known"
    assert await condition(service.client) is None


async def test_rules_are_shared_and_changed_in_the_live_account_alone(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    stored = await test_client.post("/v1/rules/checkout/versions", content=RULE, headers=TEXT)
    changed = await test_client.put("/v1/account", json={"account": {"time_zone": "Asia/Tokyo"}})
    for answer in (stored, changed):
        assert answer.status_code == 403
        assert errors(answer) == [("account", "forbidden")]
    await service.client.post(
        "/v1/rules/checkout/versions?publish=true", content=RULE, headers=TEXT
    )
    assert (await test_client.get("/v1/rules/checkout")).json()["rule"]["active"] == 1
    for client in (service.client, test_client):
        await client.delete("/v1/rules/checkout/active")
    assert (await test_client.get("/v1/rules/checkout")).json()["rule"]["active"] is None


async def test_a_test_payment_is_explained_by_what_both_accounts_had_then(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    path, entries = "/v1/rules/checkout/versions?publish=true", {"entries": [{"value": "u-1"}]}
    await service.client.post(path, content=RULE, headers=TEXT)
    await test_client.put("/v1/lists/trusted/entries", json=entries)
    await test_client.post("/v1/payments", json=payment(id="p-1", analyze=ASKED))
    await test_client.request("DELETE", "/v1/lists/trusted/entries", json=entries)
    await service.client.post(path, content=RULE.replace("> 1", "> 2"), headers=TEXT)
    await test_client.post("/v1/payments", json=payment(id="p-2", analyze=ASKED))
    for id_, version, condition_id in (("p-1", 1, "known"), ("p-2", 2, None)):
        answer = await test_client.get(f"/v1/payments/{id_}/explanation")
        assert answer.status_code == 200
        explained = answer.json()["explanation"]
        assert explained["repeated"]
        rule = explained["analyses"]["rule"]
        assert (rule["version"], rule["condition"] and rule["condition"]["id"]) == (
            version,
            condition_id,
        )
        counted = await test_client.get(f"/v1/payments/{id_}/explanation/records")
        assert len(counted.json()["records"]) == int(id_[-1])


async def test_a_backtest_of_the_test_account_reads_its_payments_and_lists_alone(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    await service.client.post(
        "/v1/rules/checkout/versions?publish=true", content=RULE, headers=TEXT
    )
    for client, entry in ((service.client, "u-1"), (test_client, "u-2")):
        put = await client.put("/v1/lists/trusted/entries", json={"entries": [{"value": entry}]})
        assert put.status_code == 200
        for user in ("u-1", "u-2", "u-3"):
            sent = payment(user={"id": user, "email": None}, analyze=ASKED)
            assert (await client.post("/v1/payments", json=sent)).status_code == 201
    await service.client.put("/v1/account", json={"account": {"time_zone": "Asia/Tokyo"}})
    program = read_file(RULE.replace("allow", "deny").encode(), KnownNames()).program
    assert isinstance(program, Rule)
    for name in ("shop", "shop:test"):
        report = await asyncio.to_thread(
            backtest_account, service.folder, name, program, (0, NOW + 1), {}, unwatched
        )
        assert [(each.now.condition, each.payments) for each in report.changes] == [("known", 1)]


async def test_an_action_can_be_forced(test_client: httpx.AsyncClient) -> None:
    for action in ("allow", "challenge", "deny"):
        answer = await test_client.post("/v1/payments", json=forcing(action=action))
        assert answer.json()["payment"]["analyses"]["bot_behaviour"]["action"] == action


async def test_a_score_can_be_forced_and_decides(test_client: httpx.AsyncClient) -> None:
    bands = {0.0: "allow", 0.49: "allow", 0.5: "challenge", 0.84: "challenge", 0.85: "deny"}
    for score, action in bands.items():
        answer = await test_client.post("/v1/payments", json=forcing(score=score))
        decided = answer.json()["payment"]["analyses"]["bot_behaviour"]
        assert decided == {"action": action, "score": score}


async def test_every_error_can_be_forced_and_stores_nothing(test_client: httpx.AsyncClient) -> None:
    for status, error in STATUSES.items():
        asked = payment(id="p-1", metadata={"toll_test": {"status": status, "delay_ms": 1}})
        answer = await test_client.post("/v1/payments", json=asked)
        assert answer.status_code == status
        assert answer.json() == error.example.value
        assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert (await test_client.get("/v1/payments/p-1")).status_code == 404


async def test_what_cannot_be_forced_is_refused(test_client: httpx.AsyncClient) -> None:
    place = "payment.metadata.toll_test"
    for asked, found in (
        ({"acton": "deny"}, [(f"{place}.acton", "unknown_member")]),
        ({"action": "refuse"}, [(f"{place}.action", "invalid_value")]),
        ({"score": 1.1}, [(f"{place}.score", "out_of_range")]),
        ({"delay_ms": 30_001}, [(f"{place}.delay_ms", "out_of_range")]),
        ({"delay_ms": "5"}, [(f"{place}.delay_ms", "invalid_type")]),
        ({"status": 418}, [(f"{place}.status", "invalid_value")]),
        ("deny", [(place, "invalid_type")]),
        (
            {"action": "no", "score": -1},
            [(f"{place}.action", "invalid_value"), (f"{place}.score", "out_of_range")],
        ),
    ):
        answer = await test_client.post("/v1/payments", json=payment(metadata={"toll_test": asked}))
        assert answer.status_code == 422
        assert errors(answer) == found


async def test_an_update_can_be_made_to_fail_and_then_changes_nothing(
    test_client: httpx.AsyncClient,
) -> None:
    assert (await test_client.post("/v1/payments", json=payment(id="p-1"))).status_code == 201

    async def update(**asked: Any) -> httpx.Response:
        sent = {"payment": {"status": "failed", "metadata": {"toll_test": asked}}}
        return await test_client.patch("/v1/payments/p-1", json=sent)

    for status in (401, 404, 429, 503):
        answer = await update(status=status, delay_ms=1)
        assert answer.status_code == status
        assert len(answer.json()["errors"]) >= 1
    history = (await test_client.get("/v1/payments/p-1")).json()["history"]
    assert [each["kind"] for each in history] == ["creation"]
    refused = await update(action="deny")
    assert errors(refused) == [("payment.metadata.toll_test", "invalid_value")]
    assert (await update(delay_ms=1)).status_code == 200


async def test_a_delayed_payment_of_an_account_that_was_deleted_meanwhile_stores_nothing(
    service: Service, test_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def delay(_seconds: float) -> None:
        begun.set()
        await ended.wait()

    monkeypatch.setattr(forced_outcomes, "asyncio", SimpleNamespace(sleep=delay))
    # Without an analysis: no windows are read, which are gone.
    sent = payment(metadata={"toll_test": {"delay_ms": 300}}, analyze={})
    delayed = asyncio.ensure_future(test_client.post("/v1/payments", json=sent))
    await begun.wait()
    await SuspendAccount("shop").perform(service.engine, "test", _ignore)
    await DeleteAccount("shop").perform(service.engine, "test", _ignore)
    ended.set()
    assert (await delayed).status_code == 401
    assert all(service.engine.journal.count(each) == 2 for each in service.engine.state.deleted)


async def test_live_payments_force_nothing(service: Service) -> None:
    answer = await service.client.post("/v1/payments", json=forcing(status=503, action="deny"))
    assert answer.status_code == 201
    assert answer.json()["payment"]["analyses"]["bot_behaviour"]["action"] != "deny"


async def test_a_test_key_says_so_and_is_revoked_under_the_accounts_name(
    service: Service, test_key: str, test_client: httpx.AsyncClient
) -> None:
    assert test_key.startswith("toll_test_")
    await RevokeKey("shop", test_key[:18]).perform(service.engine, "test", _ignore)
    assert (await test_client.get("/v1/account")).status_code == 401


async def test_the_test_account_is_suspended_and_deleted_with_its_live_one(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    with pytest.raises(Forbidden):
        await SuspendAccount("shop:test").perform(service.engine, "test", _ignore)
    await SuspendAccount("shop").perform(service.engine, "test", _ignore)
    assert (await test_client.get("/v1/account")).status_code == 403
    await DeleteAccount("shop").perform(service.engine, "test", _ignore)
    assert service.engine.state.numbers == {}
    assert (await test_client.get("/v1/account")).status_code == 401


async def test_the_test_account_is_not_deleted_while_it_is_purged(
    service: Service, test_client: httpx.AsyncClient
) -> None:
    await SuspendAccount("shop").perform(service.engine, "test", _ignore)
    number = service.engine.state.numbers["shop:test"]
    await asyncio.gather(
        purge_account(service.engine, number),
        DeleteAccount("shop").perform(service.engine, "test", _ignore),
    )
    assert service.engine.state.numbers == {}


async def test_the_test_account_is_the_same_after_a_restart(tmp_path: Path) -> None:
    async with open_service(tmp_path / "data") as service:
        verb = CreateKey("shop", ("payments",), test=True)
        key = (await verb.perform(service.engine, "test", _ignore)).key
        await service.client.post(
            "/v1/rules/checkout/versions?publish=true", content=RULE, headers=TEXT
        )
        async with service.client_with(key) as client:
            assert await condition(client) is None
    async with open_engine(tmp_path / "data", "serve", clock=lambda: NOW) as engine:
        await rebuild(engine, _ignore)
        again = Service(engine, tmp_path / "data", Jobs())
        async with again.client_with(key) as client:
            assert [await condition(client) for _ in range(2)] == ["busy", "busy"]
