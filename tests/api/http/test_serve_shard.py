"""How far a node that serves follows the owner of its journal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

import psycopg
import pytest

from tollkeeper.api.http.forward import Forwarder
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.serve_shard import _MANY, _STRIDE_S, ServedShard, Serving, _follow, _step
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.engine.following import Interrupted
from tollkeeper.engine.journal.postgres.ownership import JournalStanding
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.offline.jobs.jobs import open_jobs
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.search.ask import run_search_process
from tollkeeper.tests.engine.happenings import RULE, bare, happen, pay
from tollkeeper.tests.engine.offline.backtest.shop import open_shop
from tollkeeper.tests.engine.test_following import following_of, known
from tollkeeper.tests.postgres import own_database

pytestmark = pytest.mark.anyio


_HELD = """
CREATE OR REPLACE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.lease_until = clock_timestamp() + interval '50 seconds'; {}
  RETURN NEW;
END $$
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_node_counts_only_what_the_owner_has_heard_that_the_standby_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_database() as url, psycopg.connect(url, autocommit=True) as connection:
        source = Database(url, tmp_path / "owner")
        async with (
            open_shop(source) as shop,
            run_search_process(source) as search,
            open_jobs() as jobs,
        ):
            await shop.publish(RULE)
            await shop.engine.journal.renew()
            async with following_of(shop, url, tmp_path / "follower") as following:
                before = await known(following.engine, shop.account, shop.now)
                # Whatever the owner writes, the standby gets no further and the lease lasts.
                connection.execute(_HELD.format("NEW.safe_place = OLD.safe_place;"))
                connection.execute(
                    "CREATE TRIGGER held BEFORE UPDATE ON shards"
                    " FOR EACH ROW EXECUTE FUNCTION hold()"
                )
                await happen(shop, [(1, ("pay", bare()))])
                journal, looks = following.journal, asyncio.Semaphore(0)
                look = journal.standing

                async def standing() -> JournalStanding:
                    looks.release()
                    return await look()

                monkeypatch.setattr(journal, "standing", standing)
                settings = Settings(folder=tmp_path / "follower", database=url)
                requests = ShardRequests(Forwarder(None, 30), Figures())
                requests.engine = following.engine
                serving = Serving(settings, "", jobs, OpenId(), lambda _share: None, Figures())
                shard = ServedShard(serving, source, requests, search)
                following_it = asyncio.create_task(_follow(shard, following))
                # At the third look all that was found at the first is counted.
                for _ in range(3):
                    await looks.acquire()
                last = shop.engine.journal.last_sequence()
                assert following.counted < last
                assert await known(following.engine, shop.account, shop.now) == before
                connection.execute(_HELD.format(""))
                connection.execute("UPDATE shards SET safe_place = last_place")
                while following.counted < last:
                    await looks.acquire()
                assert await known(following.engine, shop.account, shop.now) != before
                serving.stopping.set()
                assert not await following_it


async def test_a_node_that_has_counted_many_entries_counts_the_next_ones_later(
    tmp_path: Path,
) -> None:
    with own_database() as url:
        async with open_shop(Database(url, tmp_path / "owner")) as shop:
            await shop.publish(RULE)
            await shop.engine.journal.renew()
            async with following_of(shop, url, tmp_path / "follower") as following:
                journal = shop.engine.journal
                await _step(following, journal.last_sequence())
                for step, (count, is_many) in enumerate(((1, False), (_MANY, True), (1, False))):
                    for number in range(count):
                        await pay(shop, f"p-{step}-{number}", bare())
                    begun = monotonic()
                    due = await _step(following, journal.last_sequence())
                    assert following.counted == journal.last_sequence()
                    assert (due >= begun + _STRIDE_S) if is_many else (due <= monotonic())


async def test_a_node_that_has_counted_what_the_database_has_no_more_begins_again(
    tmp_path: Path,
) -> None:
    with own_database() as url, psycopg.connect(url, autocommit=True) as connection:
        source = Database(url, tmp_path / "owner")
        async with (
            open_shop(source) as shop,
            run_search_process(source) as search,
            open_jobs() as jobs,
        ):
            await shop.publish(RULE)
            await pay(shop, "p-1", bare())
            await shop.engine.journal.flush()
            async with following_of(shop, url, tmp_path / "follower") as following:
                requests = ShardRequests(Forwarder(None, 30), Figures())
                requests.engine = following.engine
                settings = Settings(folder=tmp_path / "follower", database=url)
                serving = Serving(settings, "", jobs, OpenId(), lambda _share: None, Figures())
                connection.execute(
                    "UPDATE shards SET last_place = last_place - 1, safe_place = last_place - 1,"
                    " owner = 'another', lease_until = clock_timestamp() + interval '50 seconds'"
                )
                with pytest.raises(Interrupted, match="older than it was"):
                    await _follow(ServedShard(serving, source, requests, search), following)
