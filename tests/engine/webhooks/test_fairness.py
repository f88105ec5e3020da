"""Receivers that hang, fail or are slow hold up no other account's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from tollkeeper.api.http.notices import notice_body
from tollkeeper.engine.journal.schema import DATABASE_FILE
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Notice
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.webhooks import MAX_WEBHOOKS, RequestedWebhook
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.webhooks import delivery
from tollkeeper.engine.webhooks.change_webhooks import put_webhook
from tollkeeper.engine.webhooks.follow import put_notices
from tollkeeper.tests.api.http.service import NOW, Service, open_service, payment

pytestmark = pytest.mark.anyio

LATER = NOW + 60 * delivery.SECOND
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hangs does so until a test has ended, however slow the machine is."""
    monkeypatch.setattr(delivery, "TIMEOUT_S", 2 * PATIENCE_S)


class Receivers:
    """A server for all addresses: those below `/fine` are answered, the others as `others` says."""

    def __init__(self) -> None:
        self.others: Literal["hang", "fail"] = "hang"
        self.held: Counter[str] = Counter()
        self.failed = 0
        self.fine: asyncio.Queue[str] = asyncio.Queue()
        self.open: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    def accept(self, read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        self.open[write] = asyncio.create_task(self.answer(read, write))

    async def close(self) -> None:
        for write in self.open:
            write.close()
        await asyncio.wait(self.open.values())

    async def answer(self, read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await read.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                await read.readexactly(2)
                if path.startswith("/fine"):
                    self.fine.put_nowait(path)
                    write.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                elif self.others == "fail":
                    self.failed += 1
                    write.write(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
                else:
                    self.held[path.split("/")[1]] += 1
                    await read.read()
                    return


@asynccontextmanager
async def receiving(receivers: Receivers) -> AsyncIterator[str]:
    async with await asyncio.start_server(receivers.accept, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
        await receivers.close()


@asynccontextmanager
async def delivering(
    engine: Engine, make_body: delivery.MakeBody = lambda *_: b"{}"
) -> AsyncIterator[None]:
    task = asyncio.create_task(delivery.deliver(engine, make_body))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def add_webhooks(service: Service, account: str, base: str, count: int) -> None:
    """Webhooks of an account, and a notice that is due to each."""
    if account != "shop":
        await service.account(account)
    number = find_account(service.engine.state, account).number
    urls = [f"{base}/{each}" for each in range(count)]
    for url in urls:
        await put_webhook(service.engine, number, "test", RequestedWebhook(url))
    notices = [Notice(number, url, "rule.published", 1) for url in urls]
    key = service.engine.folder_key
    await service.engine.outbox.write(
        partial(outbox.add_notices, notices=notices, key=key, now=NOW)
    )


async def test_an_account_whose_receivers_hang_leaves_places_for_the_others(tmp_path: Path) -> None:
    receivers = Receivers()
    async with open_service(tmp_path / "data") as service, receiving(receivers) as base:
        service.engine.reach = "any"
        for number in range(6):
            await add_webhooks(service, f"a{number}", f"{base}/a{number}", MAX_WEBHOOKS)
        async with delivering(service.engine):
            async with asyncio.timeout(PATIENCE_S):
                while receivers.held.total() < 30:
                    await asyncio.sleep(0.01)
                await add_webhooks(service, "shop", f"{base}/fine", 1)
                assert await receivers.fine.get() == "/fine/0"
        assert set(receivers.held.values()) == {5}


async def test_addresses_that_fail_share_half_of_the_places(tmp_path: Path) -> None:
    receivers = Receivers()
    receivers.others = "fail"
    async with open_service(tmp_path / "data") as service, receiving(receivers) as base:
        engine = service.engine
        engine.reach = "any"
        for number in range(12):
            await add_webhooks(service, f"a{number}", f"{base}/a{number}", 5)
        async with delivering(engine):
            async with asyncio.timeout(PATIENCE_S):
                while receivers.failed < 60:
                    await asyncio.sleep(0.01)
                receivers.others = "hang"
                engine.clock = lambda: LATER
                while receivers.held.total() < 25:
                    await asyncio.sleep(0.01)
                await add_webhooks(service, "shop", f"{base}/fine", 1)
                assert await receivers.fine.get() == "/fine/0"
        assert receivers.held.total() == 25


async def test_an_entry_that_is_damaged_holds_up_no_notice_of_others(tmp_path: Path) -> None:
    receivers = Receivers()
    async with open_service(tmp_path / "data") as service, receiving(receivers) as base:
        engine = service.engine
        engine.reach, engine.damage.policy = "any", "skip"
        wanted = RequestedWebhook(f"{base}/fine", kinds=("payment.decided",))
        await put_webhook(engine, find_account(engine.state, "shop").number, "test", wanted)
        for id_ in ("p-1", "p-2"):
            await service.client.post("/v1/payments", json=payment(id=id_))
        await put_notices(engine)
        with closing(sqlite3.connect(service.folder / DATABASE_FILE)) as journal, journal:
            journal.execute("UPDATE journal SET body = CAST('{' AS BLOB) WHERE id = 'p-1'")
        async with delivering(engine, notice_body), asyncio.timeout(PATIENCE_S):
            await receivers.fine.get()
        found = await engine.outbox.read(lambda c: outbox.deliveries(c, 1, None, 9))
        assert {each.subject: each.state for each in found}["p-1"] == "dropped"
        assert len(engine.damage.passed_over) == 1
