"""Commands that leave a request for the service which holds the journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tollkeeper.engine.journal import requests
from tollkeeper.engine.journal.contract import CommandRequest, Unavailable
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.publish.queue import answer_requests

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_journal_that_can_not_be_looked_into_for_a_while_is_looked_into_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, seen = iter((True, True, False)), asyncio.Event()

    async def look() -> list[CommandRequest]:
        if next(looks, False):
            raise Unavailable("the database is away")
        seen.set()
        return []

    monkeypatch.setattr(requests, "LOOK_S", 0)
    async with open_engine(tmp_path, "serve") as engine:
        monkeypatch.setattr(engine.journal, "requests", look)
        answering = asyncio.create_task(answer_requests(engine))
        await asyncio.wait(
            (answering, asyncio.create_task(seen.wait())), return_when="FIRST_COMPLETED"
        )
        assert not answering.done()
        answering.cancel()
