"""What an overlap outlived is taken out of the journal by the hourly round, and signs no longer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal import reads
from tollkeeper.engine.privacy import retention
from tollkeeper.engine.registry.changes import WebhookSet
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.tests.api.http.service import NOW, Service, open_service

pytestmark = pytest.mark.anyio

URL = "https://shop.example/hook"
FIRST, SECOND = "a" * 32, "b" * 32


async def kept_secrets(service: Service) -> list[int]:
    """How many secrets each change of the webhook holds, oldest first."""
    entries = await service.engine.journal.query(lambda c: list(reads.changes(c, 0)))
    changes = (each.change for each in recorded_changes(entries))
    return [len(change.secrets) for change in changes if isinstance(change, WebhookSet)]


async def one_round(service: Service) -> None:
    """What is done each hour, up to the pause."""
    pausing = asyncio.Event()
    expire = service.engine.journal.expire

    async def expired(now: int) -> None:
        await expire(now)
        pausing.set()

    service.engine.journal.expire = expired  # type: ignore[method-assign]
    task = asyncio.create_task(retention.keep_to_retention(service.engine))
    await pausing.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    service.engine.journal.expire = expire  # type: ignore[method-assign]


async def test_a_replaced_secret_is_gone_with_the_first_round_after_its_overlap(
    tmp_path: Path,
) -> None:
    async with open_service(tmp_path / "data") as service:
        client, engine = service.client, service.engine
        made = await client.put("/v1/webhooks", json={"webhook": {"url": URL, "secrets": [FIRST]}})
        assert made.status_code in (200, 201), made.text
        path = f"/v1/webhooks/{made.json()['webhook']['id']}/secret"
        answer = await client.post(path, json={"secret": {"value": SECOND}})
        assert answer.status_code == 200, answer.text
        engine.clock = lambda: NOW + DAY - 1
        await one_round(service)
        assert await kept_secrets(service) == [0, 2]
        engine.clock = lambda: NOW + DAY + 1
        await one_round(service)
        assert await kept_secrets(service) == [0, 1]
    # What was rewritten is read at the next start, and the secret left still signs.
    async with open_service(tmp_path / "data") as service:
        assert await kept_secrets(service) == [0, 1]
        (webhook,) = service.engine.state.accounts[1].webhooks.values()
        assert len(webhook.secrets) == 1
