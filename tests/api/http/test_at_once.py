"""Requests for few ids and keys at once, while the database's connections are cut: each is done once,
or not at all, and every decision read what the journal has before it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shutil import copy
from typing import Any

import httpx
import pytest

from tollkeeper.bench.crash import differing, payment, rule
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.source import Database
from tollkeeper.tests.api.http.forked_jobs import open_forked_jobs
from tollkeeper.tests.api.http.service import Service
from tollkeeper.tests.engine.journal.proxy import Proxy, proxy_to
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.postgres import own_database

pytestmark = pytest.mark.anyio
ROUNDS = 8
AT_ONCE = 30
IDS = 6
KEYS = 4
USERS = ("ana", "rui")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def database() -> Iterator[str]:
    with own_database() as url:
        yield url


class Told:
    """What the clients were told."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.updated = Counter[str]()
        self.labelled = Counter[str]()
        self.by_key: defaultdict[str, set[tuple[bytes, bytes]]] = defaultdict(set)
        self.statuses = Counter[tuple[str, int]]()


async def create(client: httpx.AsyncClient, told: Told, chance: Random, turn: int) -> None:
    id_, key = f"p-{turn}-{chance.randrange(IDS)}", chance.choice([None, *range(KEYS)])
    headers = {} if key is None else {"idempotency-key": f"k-{turn}-{key}"}
    body = httpx.Request("POST", "/", json=payment(id_, chance.choice(USERS))).content
    await asyncio.sleep(chance.choice([0, 0, 0.001, 0.005]))
    answer = await client.post("/v1/payments", content=body, headers=headers)
    told.statuses["create", answer.status_code] += 1
    if answer.status_code != 201:
        return
    if "idempotent-replayed" not in answer.headers:
        told.created.append(id_)
    for each in headers.values():
        told.by_key[each].add((body, answer.content))


async def update(client: httpx.AsyncClient, told: Told, chance: Random, turn: int) -> None:
    id_ = f"p-{turn - chance.randrange(2)}-{chance.randrange(IDS)}"
    await asyncio.sleep(chance.choice([0, 0.001, 0.005]))
    sent = {"payment": {"status": chance.choice(["failed", "blocked"])}}
    answer = await client.patch(f"/v1/payments/{id_}", json=sent)
    told.statuses["update", answer.status_code] += 1
    told.updated[id_] += answer.is_success


async def label(client: httpx.AsyncClient, told: Told, chance: Random, turn: int) -> None:
    id_ = f"p-{turn - chance.randrange(2)}-{chance.randrange(IDS)}"
    verdict = {"label": chance.choice(["fraud", "legitimate"])}
    answer = await client.put(f"/v1/payments/{id_}/labels/review", json=verdict)
    told.statuses["label", answer.status_code] += 1
    told.labelled[id_] += answer.is_success


async def publish(client: httpx.AsyncClient, told: Told, number: int) -> None:
    path = "/v1/rules/crash/versions?publish=true"
    answer = await client.post(path, content=rule(number))
    told.statuses["publish", answer.status_code] += 1


async def cut_now_and_then(proxy: Proxy, chance: Random) -> None:
    while True:
        await asyncio.sleep(chance.uniform(0.02, 0.15))
        proxy.cut()


def kept(shop: Shop) -> list[Entry]:
    return [entry for some in shop.engine.journal.replay() for entry in some]


async def counted(shop: Shop) -> list[Any]:
    """What the rule's windows count of each user."""
    [active] = shop.engine.active[shop.account].rules.values()
    windows = active.reading.plan.windows
    return [
        await shop.engine.windows.read(shop.account, shop.now, [(w, (user,)) for w in windows])
        for user in USERS
    ]


@pytest.mark.parametrize("is_cut", [False, True])
async def test_each_request_is_done_once_or_not_at_all(
    database: str, tmp_path: Path, is_cut: bool
) -> None:
    chance, told = Random(7), Told()
    async with (
        proxy_to(database) as (proxy, through),
        open_shop(Database(through, tmp_path / "live")) as shop,
        open_forked_jobs() as jobs,
    ):
        service = Service(shop.engine, tmp_path, jobs)
        key = await service.key("shop", "payments", "rules", "labels:write")
        async with service.client_with(key) as client:
            await publish(client, told, 0)
            cutting = asyncio.create_task(cut_now_and_then(proxy, chance)) if is_cut else None
            for turn in range(ROUNDS):
                shop.now += 1_000_000
                asked = [
                    chance.choices([create, update, label], [4, 2, 1])[0](
                        client, told, chance, turn
                    )
                    for _ in range(AT_ONCE)
                ]
                await asyncio.gather(*asked, publish(client, told, turn + 1))
            if cutting is not None:
                cutting.cancel()
                await asyncio.wait([cutting])
            live, now = await counted(shop), shop.now
    (tmp_path / "again").mkdir()
    copy(tmp_path / "live" / KEY_FILE, tmp_path / "again")
    async with open_shop(Database(database, tmp_path / "again"), now) as again:
        assert await counted(again) == live
        entries = kept(again)
    of = {kind: Counter(e.id for e in entries if e.kind == kind) for kind in Kind}
    assert Counter(told.created) == of[Kind.PAYMENT]
    assert set(of[Kind.PAYMENT].values()) == {1}
    assert +told.updated == of[Kind.UPDATE]
    assert all(told.labelled[id_] >= count for id_, count in of[Kind.LABEL].items())
    assert all(len(same) == 1 for same in told.by_key.values()), told.by_key
    assert differing(entries) == 0
    assert all(status in (200, 201, 404, 422, 503) for _, status in told.statuses), told.statuses
