"""The process that keeps the index: it follows, answers, and comes back when it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search import ask, backlog, index_file, process, reading
from tollkeeper.engine.search.ask import (
    IndexQuestion,
    LocalSearch,
    SearchProcess,
    run_search_process,
)
from tollkeeper.engine.search.backlog import index_backlog, yield_processor
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import CountPayments, FindPayments, FoundPage
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.open_questions import OpenQuestions
from tollkeeper.engine.search.reading import IndexFile, open_index
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
    async with run_search_process(shop.engine.folder) as search:
        for number in range(3):
            await pay(shop, f"p-{number}", bare())
        await count_until(search, shop, "user:u", 3)
        await pay(shop, "p-3", bare(user="v"))
        await count_until(search, shop, "user:v", 1)
        wanted = read_filter([("id", "p-3")], shop.now)
        page, _ = await search.ask(shop.account, FindPayments(wanted, None, 10), FoundPage)
        assert [each.id for each in page.payments] == ["p-3"]


async def test_an_index_that_is_deleted_is_made_again(shop: Shop) -> None:
    await pay(shop, "p-0", bare())
    async with run_search_process(shop.engine.folder) as search:
        await count_until(search, shop, "", 1)
        for number in (1, 2):
            index_file.remove_index(shop.engine.folder)
            await pay(shop, f"p-{number}", bare())
            await count_until(search, shop, "", number + 1)


async def test_an_index_that_is_deleted_while_it_is_opened_is_not_taken_for_the_one_that_is_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shop.engine.folder
    await shop.engine.journal.flush()
    with closing(Follower(folder)) as follower:
        assert follower.is_there()

    def deleting(connect: Any) -> Any:
        def connect_and_delete(folder: Path) -> Any:
            connection = connect(folder)
            index_file.remove_index(folder)
            return connection

        return connect_and_delete

    for opener, connect in ((Follower, "connect_to_write"), (IndexFile, "connect_to_read")):
        Follower(folder).close()
        with monkeypatch.context() as patched:
            patched.setattr(index_file, connect, deleting(getattr(index_file, connect)))
            opened = opener(folder)
        with closing(opened):
            assert not opened.is_there()
            Follower(folder).close()
            assert not opened.is_there()


async def test_a_killed_process_is_started_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "_PAUSE_S", 0)
    await pay(shop, "p-0", bare())
    async with run_search_process(shop.engine.folder) as search:
        assert isinstance(search, SearchProcess)
        await count_until(search, shop, "", 1)
        killed = search.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await pay(shop, "p-1", bare())
        await count_until(search, shop, "", 2)
        assert search.pid != killed


async def test_an_index_that_is_far_behind_is_brought_up_by_a_process_that_ends(shop: Shop) -> None:
    for number in range(3):
        await pay(shop, f"p-{number}", bare())
    await shop.engine.journal.flush()
    await asyncio.to_thread(index_backlog, shop.engine.folder)
    with open_index(shop.engine.folder, shop.account) as index:
        assert CountPayments(read_filter([("user", "u")], shop.now)).answer(index) == 3


async def test_a_step_takes_in_as_many_entries_as_it_is_told(shop: Shop) -> None:
    for number in range(3):
        await pay(shop, f"p-{number}", bare())
    await shop.engine.journal.flush()
    with closing(Follower(shop.engine.folder)) as follower:
        taken = [follower.step(2)]
        while taken[-1]:
            taken.append(follower.step(2))
    *whole, last, after = taken
    assert set(whole) == {2}
    assert last <= 2
    assert after == 0
    with open_index(shop.engine.folder, shop.account) as index:
        assert CountPayments(read_filter([("user", "u")], shop.now)).answer(index) == 3


async def test_a_step_gives_way_before_each_entry_and_each_set_it_writes(shop: Shop) -> None:
    for number in range(3):
        await pay(shop, f"p-{number}", bare())
    await shop.engine.journal.flush()
    given: list[None] = []
    with closing(Follower(shop.engine.folder)) as follower:
        follower.step(give_way=lambda: given.append(None))
    with closing(index_file.connect_to_read(shop.engine.folder)) as index:
        (sets,) = index.execute("SELECT count(*) FROM postings").fetchone()
    assert len(given) == 3 + sets


class Ended(BaseException):
    """Ends the thread that follows, which goes on for ever elsewhere."""


async def test_following_leaves_to_that_process_what_one_step_can_not_take_in(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed, paid = threading.Event(), threading.Event()

    def index_once(source: JournalSource) -> None:
        if indexed.is_set():
            raise Ended
        index_backlog(source)
        indexed.set()
        paid.wait()

    monkeypatch.setattr(process, "TAKEN_AT_ONCE", 3)
    monkeypatch.setattr(process, "index_backlog", index_once)
    for number in range(2 * 3):
        if number == 3:
            await shop.engine.journal.flush()
            follow = asyncio.to_thread(process.follow, shop.engine.folder, OpenQuestions())
            following = asyncio.create_task(follow)
            await asyncio.to_thread(indexed.wait)
        await pay(shop, f"p-{number}", bare())
    await shop.engine.journal.flush()
    paid.set()
    with pytest.raises(Ended):
        await following
    with open_index(shop.engine.folder, shop.account) as index:
        assert CountPayments(read_filter([("user", "u")], shop.now)).answer(index) == 2 * 3


def test_a_failure_that_nobody_foresaw_is_told_once_and_following_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failures = iter((ValueError, ValueError, Ended))

    def fail(_source: JournalSource) -> Follower:
        raise next(failures)("odd")

    monkeypatch.setattr(process, "Follower", fail)
    monkeypatch.setattr(process, "_AFTER_FAILURE_S", 0)
    with pytest.raises(Ended):
        process.follow(tmp_path, OpenQuestions())
    assert capfd.readouterr().err.count("the index can't follow the journal: Traceback") == 1


def test_a_process_that_catches_up_lets_every_other_go_first() -> None:
    told = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", told], stdin=subprocess.PIPE) as yielding:
        yield_processor(yielding.pid)
        assert os.getpriority(os.PRIO_PROCESS, yielding.pid) == 19
        assert os.sched_getscheduler(yielding.pid) == os.SCHED_IDLE


async def test_where_that_process_brings_nothing_another_takes_its_place_for_a_while(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None can begin within that time.
    monkeypatch.setattr(backlog, "_PATIENCE_S", 0)
    await pay(shop, "p-0", bare())
    await shop.engine.journal.flush()
    await asyncio.to_thread(index_backlog, shop.engine.folder)
    with open_index(shop.engine.folder, shop.account) as index:
        assert CountPayments(read_filter([], shop.now)).answer(index) == 1


BESIDE_A_BUSY_LOOP = """
import os, subprocess, sys
from pathlib import Path
from tollkeeper.engine.search import backlog

os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    backlog._PATIENCE_S = 0.5
    backlog.index_backlog(Path(sys.argv[1]))
finally:
    busy.kill()
"""


async def test_an_index_gets_on_beside_others_who_want_all_of_the_processor(shop: Shop) -> None:
    for number in range(3):
        await pay(shop, f"p-{number}", bare())
    await shop.engine.journal.flush()
    command = [sys.executable, "-c", BESIDE_A_BUSY_LOOP, str(shop.engine.folder)]
    ended = await asyncio.to_thread(subprocess.run, command)
    assert ended.returncode == 0
    with open_index(shop.engine.folder, shop.account) as index:
        assert CountPayments(read_filter([], shop.now)).answer(index) == 3


async def test_a_refused_question_says_why(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BEGINNING", 2)
    for number in range(3):
        await pay(shop, f"pay-{number}", bare())
    search = LocalSearch(shop.engine.folder)
    wanted = read_filter([("id", "pay-*")], shop.now)
    with pytest.raises(Invalid, match="more than 2 payments begin so"):
        await search.ask(shop.account, CountPayments(wanted), int)
    asked = IndexQuestion(7, shop.account, CountPayments(wanted))
    with closing(IndexFile(shop.engine.folder)) as opened:
        answered = process.answer_to(opened, asked)
    assert [each.field for each in answered.violations] == ["id"]


async def test_the_process_ends_with_the_service(shop: Shop) -> None:
    async with run_search_process(shop.engine.folder) as search:
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
