"""Whoever follows a journal could go on as its owner would, whatever has happened."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.facts.facts import derive
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.following import (
    Following,
    become_owner,
    begin_to_follow,
    catch_up,
    fill_again,
    look_for_amendments,
)
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.journal.contract import Fenced
from tollkeeper.engine.journal.postgres.journal import follow_database
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.open import fill_windows, open_on
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.programs.active import choose_programs
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.runtime import Engine
from tollkeeper.tests.engine.happenings import (
    CARDS,
    DAY,
    RULE,
    USERS,
    bare,
    happen,
    instant,
    pay,
    steps,
)
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop
from tollkeeper.tests.postgres import empty, own_database

EXAMPLES = int(os.environ.get("FOLLOW_EXAMPLES", "3"))
FURTHER = "  condition more when count(payments by merchant.id over 7d) > 98 then deny\n"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with own_database() as url:
        yield url


@asynccontextmanager
async def following_of(shop: Shop, url: str, folder: Path) -> AsyncIterator[Following]:
    folder.mkdir()
    copy(shop.engine.folder / KEY_FILE, folder)
    async with (
        follow_database(url) as journal,
        open_on(journal, Database(url, folder), clock=lambda: shop.now) as engine,
    ):
        standing = await journal.standing()
        assert standing.safe == standing.last
        following = await begin_to_follow(engine, journal)
        await fill_windows(engine, lambda _share: None)
        yield following


async def caught_up(shop: Shop, following: Following) -> None:
    await shop.engine.journal.renew()
    await catch_up(following, (await following.journal.standing()).safe)
    await look_for_amendments(following)
    await fill_again(following)


async def known(engine: Engine, account: int, now: int) -> list[Any]:
    """What a decision about any of several payments would read, were this engine the owner's."""
    await engine.seen_times.own(engine.journal.flush)
    active, found = engine.active[account], []
    for user in (*USERS, "w"):
        for card in CARDS:
            body = {
                "type": "purchase",
                "currency": "BRL",
                "amount": 3,
                "timestamp": instant(now),
                "user": {"id": user},
                "merchant": {"id": "m"},
                "method": {
                    "type": "card",
                    "card": {
                        "network": "visa",
                        "presence": "card_not_present",
                        "bin": "40000000",
                        "last_four": card,
                    },
                },
                "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
            }
            payment = read_creation(json.dumps({"payment": body}).encode(), now)
            assert isinstance(payment, Payment), payment
            facts = derive(payment, now, engine.clients)
            programs = choose_programs(active, payment, now)
            reads = [
                read
                for each in (programs.scorecard, programs.rule)
                if each is not None
                for read in each.reading.reads(facts, active.environment)
            ]
            found.append(await engine.windows.read(account, now, reads))
    return found


async def compare(shop: Shop, following: Following) -> None:
    await caught_up(shop, following)
    owner, follower = shop.engine, following.engine
    assert follower.state == owner.state
    listed = [value for card in CARDS for value in (f"40000000-{card}",)]
    for each in (owner, follower):
        assert each.active.keys() == owner.active.keys()
    for name, held in owner.active[shop.account].contents.items():
        other = follower.active[shop.account].contents[name]
        at = [(held.index.find(v, shop.now), other.index.find(v, shop.now)) for v in listed]
        assert all(mine == theirs for mine, theirs in at)
    assert await known(follower, shop.account, shop.now) == await known(
        owner, shop.account, shop.now
    )
    assert following.counted == owner.journal.last_sequence()


async def followed(
    url: str, folder: Path, happened: list[Any], begins: int, seen: set[int]
) -> None:
    async with open_shop(Database(url, folder / "owner")) as shop:
        await shop.publish(RULE)
        follower: list[Following] = []

        async def look(_shop: Shop) -> None:
            await compare(shop, follower[0])

        async def publish(_shop: Shop) -> None:
            await shop.publish(RULE + FURTHER)

        before = happened[:begins]
        after = [(0, ("call", publish)), *happened[begins:]]
        watched = [
            step
            for number, each in enumerate(after)
            for step in ([each, (0, ("call", look))] if number in seen else [each])
        ]
        opened = following_of(shop, url, folder / "follower")

        async def begin(_shop: Shop) -> None:
            await shop.engine.journal.renew()
            follower.append(await opened.__aenter__())

        try:
            await happen(shop, [*before, (0, ("call", begin)), *watched])
            await look(shop)
        finally:
            await opened.__aexit__(None, None, None)


@settings(max_examples=EXAMPLES, deadline=None)
@given(happened=steps, begins=st.integers(0, 7), seen=st.sets(st.integers(0, 14), max_size=3))
def test_a_follower_knows_what_the_owner_knows_after_whatever_happened(
    database: str, happened: list[Any], begins: int, seen: set[int]
) -> None:
    empty(database)
    with TemporaryDirectory() as folder:
        asyncio.run(followed(database, Path(folder), happened, begins, seen))


def test_nothing_is_counted_that_the_standby_may_not_have(database: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with open_shop(Database(database, tmp_path / "owner")) as shop:
            await shop.publish(RULE)
            await shop.engine.journal.renew()
            async with following_of(shop, database, tmp_path / "follower") as following:
                # The last entry is in the database, and nobody has heard yet whether it stays: but
                # where a renewal came in between, which has told of it; then the next one shows it.
                for turn in count():
                    shop.now += 1
                    before = await known(following.engine, shop.account, shop.now)
                    await pay(shop, f"p-{turn}", bare())
                    standing = await following.journal.standing()
                    if standing.safe < standing.last:
                        break
                    await caught_up(shop, following)
                await catch_up(following, standing.safe)
                assert await known(following.engine, shop.account, shop.now) == before
                await caught_up(shop, following)
                assert await known(following.engine, shop.account, shop.now) != before

    empty(database)
    asyncio.run(run())


def end_lease(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE shards SET lease_until = clock_timestamp()")


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_purge_that_a_takeover_cuts_off_is_finished_by_the_next_owner(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    monkeypatch.setattr("tollkeeper.engine.journal.retention.CHUNK", 1)
    monkeypatch.setattr("tollkeeper.engine.journal.retention.STEP_S", 0)
    monkeypatch.setattr("tollkeeper.engine.journal.retention.KEYS", 2)

    async def run() -> None:
        async with open_shop(Database(database, tmp_path / "owner")) as shop:
            await shop.do(ChangeSettings("shop", {"retention_days": 6}))
            await shop.publish(RULE)
            for number in range(5):
                await pay(shop, f"old-{number}", bare(status="declined"))
            await shop.engine.journal.renew()
            async with following_of(shop, database, tmp_path / "follower") as following:
                shop.now += 6 * DAY + 1
                await pay(shop, "new", bare())
                await caught_up(shop, following)
                journal: Any = shop.engine.journal
                write, steps_made = journal.run, count()

                async def until_taken(work: Any) -> Any:
                    is_removal = getattr(work, "__name__", "") == "step"
                    if is_removal and next(steps_made) == done:
                        end_lease(database)
                        assert await following.journal.take_over("serve", "")
                    return await write(work)

                journal.run = until_taken
                with pytest.raises(Fenced):
                    await purge_account(shop.engine, shop.account)
                await become_owner(following)
                next_owner = following.engine
                assert await purge_account(next_owner, shop.account) == 5 - done
                assert await purge_account(next_owner, shop.account) == 0
                left = await known(next_owner, shop.account, shop.now)
                await next_owner.journal.flush()
                async with following_of(shop, database, tmp_path / "anew") as anew:
                    assert await known(anew.engine, shop.account, shop.now) == left

    empty(database)
    asyncio.run(run())
