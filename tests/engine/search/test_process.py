"""The process that keeps the index: it follows, answers, and comes back when it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search import index_file, process, reading
from tollkeeper.engine.search.asking import IndexQuestion, SearchHere, SearchProcess, searching
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import FoundPage
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.questions import CountPayments, FindPayments
from tollkeeper.engine.search.reading import IndexFile
from tollkeeper.tests.engine.happenings import bare, pay
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path / "data") as opened:
        yield opened


async def count_until(search: Any, shop: Shop, text: str, expected: int) -> None:
    """Asks until the index has followed: it says how far it is behind."""
    wanted = read_filter(read_members(text), shop.now)
    while True:
        try:
            found, lag = await search.ask(shop.account, CountPayments(wanted), int)
        except JournalError:
            lag = 1
        if lag == 0:
            assert found == expected
            return
        await asyncio.sleep(0.02)


async def test_what_is_on_disk_is_found_soon(shop: Shop) -> None:
    async with searching(shop.engine.folder) as search:
        for number in range(3):
            await pay(shop, f"p-{number}", bare())
        await count_until(search, shop, "user:u", 3)
        await pay(shop, "p-3", bare(user="v"))
        await count_until(search, shop, "user:v", 1)
        wanted = read_filter([("id", "p-3")], shop.now)
        page, _ = await search.ask(shop.account, FindPayments(wanted, None, 10), FoundPage)
        assert [each.id for each in page.payments] == ["p-3"]


async def test_a_killed_process_is_started_again(shop: Shop) -> None:
    await pay(shop, "p-0", bare())
    async with searching(shop.engine.folder) as search:
        assert isinstance(search, SearchProcess)
        await count_until(search, shop, "", 1)
        killed = search.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await pay(shop, "p-1", bare())
        await count_until(search, shop, "", 2)
        assert search.pid != killed


async def test_a_refused_question_says_why(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BEGINNING", 2)
    for number in range(3):
        await pay(shop, f"pay-{number}", bare())
    search = SearchHere(shop.engine.folder)
    wanted = read_filter([("id", "pay-*")], shop.now)
    with pytest.raises(Invalid, match="more than 2 payments begin so"):
        await search.ask(shop.account, CountPayments(wanted), int)
    asked = IndexQuestion(7, shop.account, CountPayments(wanted))
    with closing(IndexFile(shop.engine.folder)) as opened:
        answered = process.answer_to(opened, asked)
    assert [each.field for each in answered.violations] == ["id"]


async def test_the_process_ends_with_the_service(shop: Shop) -> None:
    async with searching(shop.engine.folder) as search:
        assert isinstance(search, SearchProcess)
        await count_until(search, shop, "", 0)
        pid = search.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_an_index_that_is_made_anew_is_the_one_that_is_asked(shop: Shop) -> None:
    await pay(shop, "p-0", bare())
    await shop.engine.journal.flush()
    folder, held = shop.engine.folder, threading.local()
    asked = process.IndexQuestion(7, shop.account, CountPayments(read_filter([], shop.now)))
    for kept in (True, False):
        if not kept:
            index_file.remove_index(folder)
        with closing(Follower(folder)) as follower:
            follower.catch_up()
        before = getattr(held, "opened", None)
        answered = process.answer_from(held, folder, asked)
        assert answered.found is not None
        assert msgspec.msgpack.decode(answered.found) == 1
        again = process.answer_from(held, folder, asked)
        assert again.found == answered.found
        assert held.opened is not before
