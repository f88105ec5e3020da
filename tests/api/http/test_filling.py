"""A rule whose windows are being filled: told, waited for, and whole at the seam."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.entries import Stretch
from tollkeeper.engine.publish.activate import Store
from tollkeeper.tests.api.http.service import Service, payment

pytestmark = pytest.mark.anyio

RULE = """rule gate
  condition often when count(payments by user.id over 1h) > 99 then deny
  condition known when age(payments by user.id) > 99d then deny
  condition spent when sum(payments.amount by user.id over 1h where status == "failed") > 99 then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
STORED, MEANWHILE = 5, 4


class Held:
    """The journal's stretches, one after the other as `go_on` lets them through."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        journal: Any = service.engine.journal
        self._replay = journal.replay_latest
        self._allowed = threading.Semaphore(0)
        monkeypatch.setattr(reads, "STRETCH", 2)
        monkeypatch.setattr(journal, "replay_latest", self.replay)

    def replay(self, *of: Any, **bounds: Any) -> Iterator[Stretch]:
        for stretch in self._replay(*of, **bounds):
            assert self._allowed.acquire(timeout=30)
            yield stretch

    def go_on(self, stretches: int) -> None:
        self._allowed.release(stretches)


async def create(service: Service, id_: str) -> None:
    answer = await service.client.post("/v1/payments", json=payment(id=id_, analyze=ASKED))
    assert answer.status_code == 201, answer.text


async def fail(service: Service, id_: str) -> None:
    body = {"payment": {"status": "failed"}}
    assert (await service.client.patch(f"/v1/payments/{id_}", json=body)).status_code == 200


async def gate(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = (await service.client.get("/v1/rules/gate")).json()["rule"]
    return found


async def until_filled(service: Service, share: float) -> None:
    while (await gate(service)).get("filling", 0.0) < share:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("by", ["request", "command"])
async def test_a_rule_is_active_once_its_windows_are_whole(
    service: Service, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    for number in range(STORED):
        await create(service, f"stored-{number}")
    held = Held(service, monkeypatch)
    publishing = asyncio.create_task(publish(service, by))
    while "filling" not in (await gate_if_there(service)):
        await asyncio.sleep(0.01)
    held.go_on(1)
    await until_filled(service, 0.1)
    shown = await gate(service)
    assert (shown["active"], 0 < shown["filling"] < 1) == (None, True)
    for number in range(MEANWHILE):
        await create(service, f"meanwhile-{number}")
    await fail(service, "stored-0")
    await fail(service, "meanwhile-0")
    held.go_on(100)
    await publishing
    shown = await gate(service)
    assert (shown["active"], "filling" in shown) == (1, False)
    await create(service, "after")
    answer = await service.client.get("/v1/payments/after/explanation")
    found = answer.json()["explanation"]["rule"]["histories"]
    assert [each["value"] for each in found] == [str(STORED + MEANWHILE + 1), "0s", "259.80"]


async def test_stored_entries_are_counted_in_another_thread_than_the_event_loops(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal: Any = service.engine.journal
    count, threads = journal.count, []

    def counted(*of: Any, **bounds: Any) -> int:
        threads.append(threading.current_thread())
        found: int = count(*of, **bounds)
        return found

    monkeypatch.setattr(journal, "count", counted)
    await publish(service, "command")
    assert threads
    assert threading.current_thread() not in threads


async def test_a_filling_that_fails_before_it_reads_leaves_no_series_that_still_takes_payments(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails() -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(service.engine.journal, "flush", fails)
    with pytest.raises(Unavailable):
        await publish(service, "command")
    windows = service.engine.windows
    held = [await windows.status(account) for account in service.engine.state.accounts]
    assert "filling" not in {series.state for status in held for series in status.series}


async def publish(service: Service, by: str) -> None:
    if by == "request":
        answer = await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
        assert answer.status_code == 201, answer.text
    else:
        store = Store("shop", "rule", "gate", RULE, activate=True)
        await store.perform(service.engine, "test", lambda _share: None)


async def gate_if_there(service: Service) -> dict[str, Any]:
    answer = await service.client.get("/v1/rules/gate")
    found: dict[str, Any] = answer.json()["rule"] if answer.status_code == 200 else {}
    return found
