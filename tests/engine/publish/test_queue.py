"""Commands that leave a request for the service which holds the journal."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from tollkeeper.engine.journal import requests
from tollkeeper.engine.journal.contract import CommandRequest, Unavailable
from tollkeeper.engine.journal.source import Database, connect_to_journal
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.publish.queue import _answer_request, answer_requests
from tollkeeper.tests.engine.journal.proxy import proxy_to
from tollkeeper.tests.postgres import own_database

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


async def test_a_request_is_done_though_the_answer_to_taking_it_was_lost(
    tmp_path: Path,
) -> None:
    with own_database() as url:
        async with (
            proxy_to(url) as (proxy, through),
            open_engine(Database(through, tmp_path), "serve") as engine,
        ):
            with closing(connect_to_journal(Database(url, tmp_path))) as command:
                request = requests.leave_request(command, ACCEPT_CLOCK, "ana", 1)
                (left,) = await engine.journal.requests()
                proxy.unanswered = [b"UPDATE requests", b"COMMIT"]
                doing = asyncio.create_task(_answer_request(engine, left))
                while requests.open_requests(command):
                    await asyncio.sleep(0.01)
                proxy.cut()
                told = await asyncio.to_thread(
                    requests.await_answer, command, lambda: True, request, lambda _share: None
                )
                assert told == '{"effect":{}}'
                await doing


ACCEPT_CLOCK = '{"verb": "watching:AcceptClock", "arguments": {}}'


async def test_a_request_whose_command_has_gone_is_not_done(tmp_path: Path) -> None:
    async with open_engine(tmp_path, "serve") as engine:
        before = engine.clock_watch.trusted
        await _answer_request(engine, CommandRequest(7, ACCEPT_CLOCK, "ana"))
        assert engine.clock_watch.trusted == before
