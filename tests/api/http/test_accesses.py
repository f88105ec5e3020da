"""Who reads what was sent of persons stands in the audit log, at the cost of few entries."""

from __future__ import annotations

import asyncio

import pytest

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.sqlite import SqliteJournal
from tollkeeper.engine.keep_accesses import keep_accesses, write_accesses
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.registry.accesses import MAX_PATH, MAX_PATHS
from tollkeeper.tests.api.http.service import NOW, Service, payment

pytestmark = pytest.mark.anyio


async def accesses(service: Service) -> list[dict]:
    await write_accesses(service.engine)
    audit = (await service.client.get("/v1/audit")).json()["audit"]
    return [item for item in audit if item["action"] == "personal_data_read"]


async def test_reading_a_payment_its_explanation_and_the_search_are_told(service: Service) -> None:
    assert (await service.client.post("/v1/payments", json=payment(id="p/1"))).status_code == 201
    assert await accesses(service) == []
    key = await service.key("shop", "personal:read")
    client = service.client_with(key)
    for path in ("p%2F1", "p%2F1/explanation", "p%2F1"):
        assert (await client.get(f"/v1/payments/{path}")).status_code == 200
    assert (await client.get("/v1/payments?user=ana@shop.example")).status_code != 401
    [item] = await accesses(service)
    assert item["by"] == key[:13]
    assert item["subject"] == "payments"
    assert item["detail"]["requests"] == 4
    assert item["detail"]["paths"] == [
        "/v1/payments",
        "/v1/payments/p%2F1",
        "/v1/payments/p%2F1/explanation",
    ]


async def test_a_key_that_may_not_read_of_persons_leaves_nothing(service: Service) -> None:
    client = service.client_with(await service.key("shop", "payments:write"))
    assert (await client.get("/v1/payments/p-1")).status_code == 403
    assert await accesses(service) == []


async def test_many_requests_make_one_bounded_entry(service: Service) -> None:
    for number in range(MAX_PATHS + 20):
        await service.client.get(f"/v1/payments/p-{number}")
    await service.client.get("/v1/payments/" + 2000 * "x")
    [item] = await accesses(service)
    assert item["detail"]["requests"] == MAX_PATHS + 21
    assert len(item["detail"]["paths"]) == MAX_PATHS
    assert max(map(len, item["detail"]["paths"])) <= MAX_PATH


async def test_what_can_not_be_written_is_written_the_next_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise Unavailable("the disk is full")

    await service.client.get("/v1/payments/p-1")
    with monkeypatch.context() as broken:
        broken.setattr(SqliteJournal, "append", full)
        await write_accesses(service.engine)
    await service.client.get("/v1/payments/p-2")
    [item] = await accesses(service)
    assert item["detail"]["requests"] == 2


async def test_pages_of_the_audit_log_hold_changes_accesses_and_verdicts_in_one_order(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await service.client.post("/v1/payments", json=payment(id="p-0"))).status_code == 201
    for number in range(5):
        for source in ("review", "import", "refund"):
            told = {"label": "fraud", "reason": str(number)}
            answer = await service.client.put(f"/v1/payments/p-0/labels/{source}", json=told)
            assert answer.status_code == 200
        await service.client.get(f"/v1/payments/p-{number}")
        await write_accesses(service.engine)
        settings = {"account": {"clock_skew_ms": number + 1}}
        await service.client.put("/v1/account", json=settings)
    whole = (await service.client.get("/v1/audit")).json()["audit"]
    kinds = {
        "change": "settings_changed",
        "access": "personal_data_read",
        "verdict": "verdict_given",
    }
    for kind, action in kinds.items():
        page = (await service.client.get(f"/v1/audit?kind={kind}&limit=5")).json()
        assert [item["action"] for item in page["audit"]] == [action] * 5
    both = await service.client.get("/v1/audit?kind=change&action=verdict_given")
    assert both.json() == {"audit": [], "cursor": None}
    monkeypatch.setattr(reads, "PAGE_SCAN", 4)  # so that pages end where others' labels are many
    paged, cursor = [], ""
    while True:
        page = (await service.client.get(f"/v1/audit?limit=2{cursor}")).json()
        paged += page["audit"]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert paged == whole
    round_ = ["settings_changed", "personal_data_read", "verdict_given"]
    assert [item["action"] for item in whole[:15]] == 5 * round_


async def test_accesses_are_kept_as_long_as_payments(service: Service) -> None:
    await service.client.get("/v1/payments/p-1")
    assert await accesses(service)
    service.engine.clock = lambda: NOW + 400 * 86_400_000_000
    await purge_account(service.engine, 1)
    assert list(service.engine.journal.replay(1, kinds=(Kind.ACCESS,))) == []


async def test_a_service_that_is_stopped_writes_what_it_gathered(service: Service) -> None:
    keeping = asyncio.create_task(keep_accesses(service.engine))
    await asyncio.sleep(0)
    await service.client.get("/v1/payments/p-1")
    keeping.cancel()
    await asyncio.wait([keeping])
    assert service.engine.accesses.tallies == {}
    assert len(await accesses(service)) == 1
