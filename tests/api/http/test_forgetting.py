"""Retention and erasure: what goes, what stays, and what the windows count afterwards."""

from __future__ import annotations

import asyncio
from contextlib import closing
from hashlib import sha256
from typing import Any

import pytest

from tollkeeper.engine.filling import fill
from tollkeeper.engine.journal import list_contents, schema
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.privacy.retention import keep_to_retention, purge_account
from tollkeeper.engine.shadows.record import drain
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.api.http.service import NOW, Service, payment

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1_000_000
RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition seen when count(payments by merchant.id over 30d) > 1000 then deny
  condition used when count(payments by user.id over 30d) > 1000 then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


async def publish(service: Service) -> None:
    answer = await service.client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert answer.status_code == 201, answer.text


async def create(service: Service, id_: str, **changed: Any) -> None:
    body = payment(id=id_, **({"analyze": ASKED} | changed))
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text


async def counts(service: Service, id_: str, **changed: Any) -> dict[str, str]:
    """The rule's aggregates over history as one more payment finds them."""
    await create(service, id_, **changed)
    answer = await service.client.get(f"/v1/payments/{id_}/explanation")
    rule = answer.json()["explanation"]["rule"]
    return {history["text"]: history["value"] for history in rule["histories"]}


MERCHANT = "count(payments by merchant.id over 30d)"
USER = "count(payments by user.id over 30d)"


def later(service: Service, days: int) -> None:
    service.engine.clock = lambda: NOW + days * DAY


async def erase(service: Service, user: str) -> dict[str, Any]:
    answer = await service.client.post("/v1/erasures", json={"user": user})
    assert answer.status_code == 200, answer.text
    erased: dict[str, Any] = answer.json()["erasure"]
    return erased


async def test_what_is_older_than_the_account_keeps_is_purged(service: Service) -> None:
    await service.client.put("/v1/account", json={"account": {"retention_days": 10}})
    await create(service, "old")
    await service.client.patch("/v1/payments/old", json={"payment": {"status": "failed"}})
    note = {"note": {"text": "called, no answer"}}
    assert (await service.client.post("/v1/payments/old/notes", json=note)).status_code == 201
    later(service, 5)
    await create(service, "new")
    later(service, 11)
    assert await purge_account(service.engine, 1) == 3
    for path in ("/v1/payments/old", "/v1/payments/old/notes"):
        assert (await service.client.get(path)).status_code == 404
    assert (await service.client.get("/v1/payments/new")).status_code == 200
    assert await purge_account(service.engine, 1) == 0
    assert (await service.client.get("/v1/audit")).json()["audit"]


async def test_windows_forget_what_was_purged_as_they_would_in_a_restart(
    service: Service,
) -> None:
    await publish(service)
    await service.client.put("/v1/account", json={"account": {"retention_days": 10}})
    for number in range(3):
        await create(service, f"old-{number}")
    later(service, 5)
    await create(service, "new")
    later(service, 11)
    await purge_account(service.engine, 1)
    assert await counts(service, "after") == {MERCHANT: "2", USER: "2"}


async def test_a_start_takes_away_what_a_killed_import_left(service: Service) -> None:
    await publish(service)
    with closing(schema.connect(service.folder)) as killed:
        content = list_contents.stage_content(killed, 1, "blocked", now=1)
        list(
            list_contents.fill_content(killed, content, (ListEntry(f"u-{n}") for n in range(1200)))
        )
    beginning = asyncio.create_task(keep_to_retention(service.engine))
    journal = service.engine.journal
    while await journal.query(lambda c: c.execute("SELECT 1 FROM list_entries").fetchone()):
        await asyncio.sleep(0.01)
    beginning.cancel()
    assert journal.count_staged(1, "blocked", content) is None


async def test_shadows_are_purged_with_their_payments(service: Service) -> None:
    await publish(service)
    await service.client.post(
        "/v1/rules/gate/versions", content=RULE.replace("1000 then", "2000 then")
    )
    await service.client.put("/v1/rules/gate/shadow", json={"version": 2})
    await service.client.put("/v1/account", json={"account": {"retention_days": 10}})
    await create(service, "old")
    await drain(service.engine)
    later(service, 11)
    assert await purge_account(service.engine, 1) == 2
    report = (await service.client.get("/v1/rules/gate/shadow")).json()["shadow"]
    assert report["evaluated"] == 0


async def test_one_persons_data_is_gone_and_the_rest_is_as_it_was(service: Service) -> None:
    await publish(service)
    ana = {"id": "u-ana", "email": "ana@mail.example"}
    for id_, user in (("a-1", ana), ("a-2", ana), ("b-1", {"id": "u-bob"})):
        await create(service, id_, user=user, metadata={"phone": "555-0199"})
    await service.client.patch("/v1/payments/a-1", json={"payment": {"status": "failed"}})
    entries = [{"value": value} for value in ("u-ana", "ana@mail.example", "u-bob")]
    await service.client.put("/v1/lists/blocked/entries", json={"entries": entries})
    bob = (await service.client.get("/v1/payments/b-1")).json()
    before = (await service.client.get("/v1/audit")).json()["audit"]

    erased = await erase(service, "u-ana")
    person = sha256(b"u-ana").hexdigest()
    assert erased == {
        "person": person,
        "payments": 2,
        "events": 0,
        "alerts": 0,
        "list_entries": {"blocked": 2},
    }

    known = (await service.client.get("/v1/payments/a-1")).json()
    assert known["payment"]["status"] == "failed"
    assert known["payment"]["amount"] == 129.9
    assert {"user", "device", "metadata"}.isdisjoint(known["payment"])
    assert known["payment"]["method"]["card"] == {
        "network": "visa",
        "presence": "card_not_present",
    }
    assert (await service.client.get("/v1/payments/b-1")).json() == bob
    left = (await service.client.get("/v1/lists/blocked/entries")).json()["entries"]
    assert [entry["value"] for entry in left] == ["u-bob"]
    trail = (await service.client.get("/v1/audit")).json()["audit"]
    assert (trail[0]["action"], trail[0]["detail"]) == ("person_erased", erased)
    assert trail[1]["detail"] == {"action": "remove", "count": 2, "values": []}
    (put,) = [item for item in before if item["action"] == "entries_changed"]
    put["detail"]["values"] = ["erased", "erased", "u-bob"]
    asked = trail[2]["action"], trail[2]["detail"]
    assert asked == ("erasure_asked", {"person": erased["person"]})
    assert trail[3:] == before
    explained = (await service.client.get("/v1/payments/a-1/explanation")).json()["explanation"]
    assert explained["repeated"] is False


async def test_windows_forget_an_erased_person_as_they_would_in_a_restart(
    service: Service,
) -> None:
    await publish(service)
    for number in range(3):
        await create(service, f"a-{number}", user={"id": "u-ana"})
    await create(service, "b-1", user={"id": "u-bob"})
    await erase(service, "u-ana")
    assert await counts(service, "again", user={"id": "u-ana"}) == {MERCHANT: "5", USER: "1"}
    live = await service.engine.windows.status(1)
    assert sorted((each.digest, each.entries) for each in live.series) == await restarted(service)


async def restarted(service: Service) -> list[tuple[str, int]]:
    """What the windows hold when they are filled anew from the journal."""
    plans = service.engine.active[1].plans()
    service.engine.windows = Windows(after=service.engine.journal.last_sequence())
    await fill(service.engine, 1, plans, lambda _: None)
    status = await service.engine.windows.status(1)
    return sorted((each.digest, each.entries) for each in status.series)


async def test_an_email_that_is_a_domain_alone_is_no_persons(service: Service) -> None:
    await publish(service)
    await create(service, "a-1", user={"id": "u-ana", "email": "mail.example"})
    body = {"entries": [{"value": "mail.example"}]}
    await service.client.put("/v1/lists/blocked/entries", json=body)
    await erase(service, "u-ana")
    left = (await service.client.get("/v1/lists/blocked/entries")).json()["entries"]
    assert [entry["value"] for entry in left] == ["mail.example"]


async def test_erasing_someone_unknown_changes_nothing(service: Service) -> None:
    await create(service, "b-1")
    erased = await erase(service, "nobody")
    assert (erased["payments"], erased["list_entries"]) == (0, {})
    assert (await service.client.get("/v1/payments/b-1")).json()["payment"]["user"]
