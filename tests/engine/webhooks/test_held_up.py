"""What holds deliveries up is told once, as long as it lasts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.webhooks import delivery
from tollkeeper.tests.api.http.service import open_service

pytestmark = pytest.mark.anyio


async def test_an_outage_is_told_once_and_the_next_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = iter([False, False, False, True, False, False])
    over = asyncio.Event()

    async def enter_missed(_engine: Engine) -> None:
        is_there = next(rounds, None)
        if is_there is None:
            over.set()
        if not is_there:
            raise Unavailable("the database is away")

    monkeypatch.setattr(delivery, "enter_missed", enter_missed)
    monkeypatch.setattr(delivery, "_POLL_S", 0.001)
    async with open_service(tmp_path / "data") as service:
        with capture_logs() as lines:
            delivering = asyncio.create_task(delivery.deliver(service.engine, lambda *_: b""))
            await over.wait()
            delivering.cancel()
            with suppress(asyncio.CancelledError):
                await delivering
    assert [line["event"] for line in lines] == ["deliveries_held_up"] * 2
