"""Cursors and ids tell nothing of other accounts, and those of others are worth nothing."""

from __future__ import annotations

import re

import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

PAGES = (
    "/v1/decisions",
    "/v1/payments",
    "/v1/audit",
    "/v1/alerts",
    "/v1/labels",
    "/v1/webhooks/deliveries",
)
EVENT_TYPE = "event sign_in\n  field user: string\n  metric seen = count(events by user over 1h)\n"
EVENT_TYPE += "  monitor seen_twice when seen >= 1 by user\n"
WEBHOOK = {"url": "https://shop.example/alerts", "secrets": ["a-secret-of-letters"]}


async def fill(service: Service, count: int) -> None:
    client = service.client
    answer = await client.post("/v1/event-types/sign_in/versions?publish=true", content=EVENT_TYPE)
    assert answer.status_code == 201, answer.text
    assert (await client.put("/v1/webhooks", json={"webhook": WEBHOOK})).status_code == 200
    for number in range(count):
        created = await client.post("/v1/payments", json=payment(id=f"p-{number}"))
        assert created.status_code == 201, created.text
        said = {"event": {"type": "sign_in", "data": {"user": f"u-{number}"}}}
        assert (await client.post("/v1/events", json=said)).status_code == 201
        label = {"label": "fraud"}
        put = await client.put(f"/v1/payments/p-{number}/labels/review", json=label)
        assert put.status_code == 200


async def test_every_page_goes_on_by_a_cursor_that_holds_no_number(service: Service) -> None:
    await fill(service, 3)
    for path in PAGES:
        first = (await service.client.get(path, params={"limit": "1"})).json()
        assert re.fullmatch(r"[0-9a-f]{32}", first["cursor"]), path
        (kind,) = (name for name, found in first.items() if isinstance(found, list))
        more = {"limit": "1", "cursor": first["cursor"]}
        second = (await service.client.get(path, params=more)).json()
        assert second[kind] not in ([], first[kind]), path


async def test_a_cursor_of_another_account_and_one_made_up_are_refused(service: Service) -> None:
    await fill(service, 2)
    await service.account("rival")
    key = await service.key("rival", "payments", "rules", "admin")
    async with service.client_with(key) as rival:
        for path in PAGES:
            cursor = (await service.client.get(path, params={"limit": "1"})).json()["cursor"]
            for foreign in (cursor, "7", "0" * 32, cursor[:-1], "\u0000"):
                answer = await rival.get(path, params={"cursor": foreign})
                assert (answer.status_code, errors(answer)) == (422, [("cursor", "invalid_value")])


async def test_ids_of_alerts_and_deliveries_hold_no_number_of_the_journal(service: Service) -> None:
    await fill(service, 2)
    alerts = (await service.client.get("/v1/alerts")).json()["alerts"]
    sent = (await service.client.get("/v1/webhooks/deliveries")).json()["deliveries"]
    assert [each["subject"] for each in sent] == [each["id"] for each in alerts]
    assert all(re.fullmatch(r"[0-9a-f]{32}", each["id"]) for each in alerts)
    assert all(re.fullmatch(r"[0-9a-f]{32}-[0-9a-f]{12}", each["id"]) for each in sent)
