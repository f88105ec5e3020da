"""Accounts suspended, resumed and deleted: at once, alone, and for good."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.api.http import stream
from tollkeeper.engine.backup.verify import verify
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.sqlite import SqliteJournal
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.privacy.deletion import DeleteAccount, finish_deletions
from tollkeeper.engine.publish.accounts import ResumeAccount, SuspendAccount
from tollkeeper.engine.publish.verbs import Verb
from tollkeeper.engine.registry.audit import audit_item
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.tests.api.http.service import Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

EVENT_TYPE = """event sign_in
  field account: string required
  metric failures = count(events by account over 1d)
  monitor guessing when failures >= 2
"""
RULE = """rule gate
  list rivalled: string
  condition listed when user.id in @rivalled then deny
  condition returning when age(payments by user.id) > 1d then challenge
  condition busy when count(payments by user.id over 1d) >= 2 then deny
"""
TRACES = (b"u-rival", b"203.0.113.99", b"rivalled", b"rival.example")


async def perform(service: Service, verb: Verb) -> Any:
    return await verb.perform(service.engine, "night shift", lambda _share: None)


async def fill_account(client: httpx.AsyncClient, user: str) -> None:
    """Something of everything that is kept of an account."""
    for path, text in (("event-types/sign_in", EVENT_TYPE), ("rules/gate", RULE)):
        answer = await client.post(f"/v1/{path}/versions?publish=true", content=text)
        assert answer.status_code == 201, answer.text
    webhook = {"url": "https://rival.example/alerts", "secrets": ["a-secret-of-rivals"]}
    assert (await client.put("/v1/webhooks", json={"webhook": webhook})).status_code == 200
    listed = {"entries": [{"value": f"{user}-2"}]}
    assert (await client.put("/v1/lists/rivalled/entries", json=listed)).status_code == 200
    for number in range(3):
        event = {"type": "sign_in", "id": f"{user}-{number}", "data": {"account": user}}
        assert (await client.post("/v1/events", json={"event": event})).status_code == 201
        await pay(client, f"p-{number}", user)
    ended = {"payment": {"status": "failed"}}
    assert (await client.patch("/v1/payments/p-1", json=ended)).status_code == 200
    labelled = {"label": "fraud", "reason": f"{user} said so"}
    answer = await client.put("/v1/payments/p-1/labels/review", json=labelled)
    assert answer.status_code == 200, answer.text
    assert (await client.get("/v1/payments?status=failed")).status_code == 200


async def pay(client: httpx.AsyncClient, id_: str, user: str) -> str | None:
    body = payment(
        id=id_,
        user={"id": user},
        device={"ip_address": "203.0.113.99"},
        analyze={"bot_behaviour": True, "rule": {"name": "gate"}},
    )
    answer = await client.post("/v1/payments", json=body, headers={"idempotency-key": id_ + user})
    assert answer.status_code == 201, answer.text
    condition = answer.json()["payment"]["analyses"]["rule"]["condition"]
    return None if condition is None else str(condition["id"])


@pytest.fixture
async def rival(service: Service) -> httpx.AsyncClient:
    """A second account beside `shop`, with something of everything."""
    await service.account("rival")
    client = service.client_with(await service.key("rival", "payments", "rules", "admin"))
    await fill_account(client, "u-rival")
    return client


async def test_a_suspended_account_is_refused_everything_and_goes_on_where_it_was(
    service: Service, rival: httpx.AsyncClient
) -> None:
    await perform(service, SuspendAccount("rival"))
    for method, path in (("POST", "/v1/payments"), ("GET", "/v1/account"), ("GET", "/v1/audit")):
        answer = await rival.request(method, path, json=payment())
        assert answer.status_code == 403
        assert errors(answer) == [("authorization", "forbidden")]
        assert "suspended" in answer.text
    assert (await service.client.get("/v1/account")).status_code == 200
    await perform(service, ResumeAccount("rival"))
    assert await pay(rival, "p-3", "u-rival") == "busy"


async def test_an_account_is_suspended_once_resumed_once_and_deleted_only_when_suspended(
    service: Service,
) -> None:
    for wrong in (ResumeAccount("shop"), DeleteAccount("shop")):
        with pytest.raises(Conflict):
            await perform(service, wrong)
    await perform(service, SuspendAccount("shop"))
    with pytest.raises(Conflict, match="suspended already"):
        await perform(service, SuspendAccount("shop"))


async def test_whoever_follows_the_decisions_of_a_suspended_account_is_cut_off(
    service: Service, rival: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "STREAM_SECONDS", 300)
    following = asyncio.create_task(rival.get("/v1/decisions/stream?seconds=300"))
    while not service.engine.ready.is_set() or following.done():
        await asyncio.sleep(0)
    await perform(service, SuspendAccount("rival"))
    await asyncio.wait_for(following, 60)


def stored(folder: Path) -> bytes:
    """Every byte of the data folder, write-ahead logs and all."""
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_nothing_of_a_deleted_account_is_left_in_any_file(
    service: Service, rival: httpx.AsyncClient
) -> None:
    await fill_account(service.client, "u-shop")
    kept = (await service.client.get("/v1/decisions")).json()
    assert all(trace in stored(service.folder) for trace in TRACES)
    assert b"a-secret-of-rivals" not in stored(service.folder)
    await perform(service, SuspendAccount("rival"))
    removed = await perform(service, DeleteAccount("rival"))
    assert removed.count > 10
    left = stored(service.folder)
    assert b"u-rival" not in left
    assert (await service.client.get("/v1/decisions")).json() == kept
    assert (await service.client.get("/v1/payments?status=failed")).json()["payments"]
    assert await pay(service.client, "p-3", "u-shop") == "busy"
    assert (await rival.get("/v1/account")).status_code == 401
    assert verify(service.folder).faults == []


async def test_the_name_of_a_deleted_account_begins_with_nothing(
    service: Service, rival: httpx.AsyncClient
) -> None:
    await perform(service, SuspendAccount("rival"))
    await perform(service, DeleteAccount("rival"))
    await service.account("rival")
    anew = service.client_with(await service.key("rival", "payments", "rules", "admin"))
    assert (await anew.get("/v1/payments/p-0")).status_code == 404
    assert (await anew.get("/v1/decisions")).json()["decisions"] == []
    assert (await anew.get("/v1/alerts")).json()["alerts"] == []
    assert (await anew.get("/v1/rules")).json()["rules"] == []
    assert [each["action"] for each in (await anew.get("/v1/audit")).json()["audit"]] == [
        "key_created",
        "scorecard_shipped",
        "account_created",
    ]


async def test_when_and_by_whom_an_account_was_deleted_is_kept(
    service: Service, rival: httpx.AsyncClient
) -> None:
    await perform(service, SuspendAccount("rival"))
    await perform(service, DeleteAccount("rival"))
    [deleted] = service.engine.state.deleted.values()
    assert (deleted.name, deleted.deleted_by) == ("rival", "night shift")
    entries = await service.engine.journal.query(lambda c: list(reads.changes(c, 0)))
    changes = [
        audit_item(each) for each in recorded_changes(entries) if each.account == deleted.number
    ]
    assert [(each.action, each.by) for each in changes] == [
        ("account_created", "test"),
        ("account_deleted", "night shift"),
    ]


async def test_a_deletion_that_is_cut_off_anywhere_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    async with open_service(folder) as service:
        await service.account("rival")
        key = await service.key("rival", "payments", "rules", "admin")
        await fill_account(service.client_with(key), "u-rival")
        await fill_account(service.client, "u-shop")
        await perform(service, SuspendAccount("rival"))
    run = SqliteJournal.run
    steps = 1

    async def cut_off(journal: SqliteJournal, work: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Unavailable("cut off")
        return await run(journal, work)

    async def start() -> bool:
        """Whether the deletion came to its end before it was cut off."""
        async with open_engine(folder, "serve") as engine:
            monkeypatch.setattr(SqliteJournal, "run", cut_off)
            try:
                if not engine.state.deleted:
                    await DeleteAccount("rival").perform(engine, "test", lambda _share: None)
                else:
                    await finish_deletions(engine)
            except Unavailable:
                return False
            finally:
                monkeypatch.setattr(SqliteJournal, "run", run)
            return True

    while True:
        left = steps
        if await start():
            break
        steps += 1
    assert steps > 3
    async with open_engine(folder, "serve") as engine:
        await rebuild(engine, lambda _share: None)
        assert [each.name for each in engine.state.accounts.values()] == ["shop"]
    assert b"u-rival" not in stored(folder)
    assert b"u-shop" in stored(folder)
