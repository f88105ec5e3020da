"""A round of retention that can't be done is told in a line, and one that finds an account gone goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import copy

import psycopg
import pytest
from structlog.testing import capture_logs

from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.privacy.retention import keep_to_retention, purge_account
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.tests.engine.happenings import DAY, bare, instant, pay
from tollkeeper.tests.engine.journal.proxy import proxy_to
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.engine.test_open import held, killed
from tollkeeper.tests.postgres import SERVER, own_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def database() -> Iterator[str]:
    with own_database() as url:
        yield url


def take_away(url: str) -> None:
    """Ends the database's connections, and lets no other in."""
    name = url.rpartition("/")[2]
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )


def give_back(url: str) -> None:
    """Lets connections in again."""
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f"ALTER DATABASE {url.rpartition('/')[2]} WITH ALLOW_CONNECTIONS true")


async def test_while_the_database_is_away_a_round_is_told_in_one_line(
    database: str, tmp_path: Path
) -> None:
    async with open_engine(Database(database, tmp_path), "serve") as engine:
        take_away(database)
        with capture_logs() as lines:
            rounds = asyncio.create_task(keep_to_retention(engine))
            while not any(line["event"] == "not_purged" for line in lines):
                await asyncio.sleep(0.01)
            rounds.cancel()
            with suppress(asyncio.CancelledError):
                await rounds
    (line,) = (each for each in lines if each["event"] == "not_purged")
    assert line.keys() == {"event", "log_level", "reason"}
    assert "not currently accepting connections" in line["reason"]


@pytest.mark.parametrize("answers", [True, False])
async def test_a_payment_does_not_wait_with_a_purge_for_a_database_that_is_away(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr("tollkeeper.engine.record_locks.TURN_PATIENCE_S", 0.05)
    rule = """rule checkout
  condition many when count(payments by user.id over 3d) > 99 then deny
"""
    folder = tmp_path / "live"
    async with proxy_to(database) as (proxy, through), open_shop(Database(through, folder)) as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await shop.publish(rule)
        for number in range(OLD_PAYMENTS):
            await pay(shop, f"old-{number}", bare())
        shop.now += 2 * DAY + 1
        proxy.unanswered = [b"DELETE FROM journal"]
        purging = asyncio.create_task(purge_account(shop.engine, shop.account))
        await proxy.held.wait()
        if answers:
            take_away(database)
            proxy.cut()
        with pytest.raises(Unavailable, match="takes long"):
            await shop.update("old-0", {"status": "failed"})
        assert not purging.done()
        if answers:
            give_back(database)
        else:
            proxy.cut()
        with pytest.raises(Unavailable):
            await purging
        await shop.update("old-0", {"status": "failed"})
        live, now = await held(shop), shop.now
        copy(folder / KEY_FILE, tmp_path)
    async with open_shop(Database(database, tmp_path), now) as again:
        assert await held(again) == live
        assert await purge_account(again.engine, again.account) == OLD_PAYMENTS + 1


async def test_of_an_account_that_was_deleted_meanwhile_nothing_is_left_to_purge(
    tmp_path: Path,
) -> None:
    async with open_engine(tmp_path, "serve") as engine:
        assert await purge_account(engine, 99) == 0


async def as_after_a_restart(shop: Shop, folder: Path) -> None:
    live = await held(shop)
    async with open_shop(killed(shop.engine.folder, folder), shop.now) as again:
        assert await held(again) == live


EVENTS = """event sign_in
  field user_id: string
  metric signs = count(events by user_id over 3d)
  metric since_first = age(events by user_id)
"""
RULE_OF_EVENTS = """rule checkout
  condition many when events.sign_in.signs[user.id] > 99 then deny
  condition young when events.sign_in.since_first[user.id] < 1m then deny
"""
WITHOUT_HISTORY = """scorecard bot_behaviour
  baseline 0.03
"""


async def test_windows_forget_events_that_were_purged_as_they_would_in_a_restart(
    tmp_path: Path,
) -> None:
    async with open_shop(tmp_path / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await shop.publish(EVENTS, "event", "sign_in")
        await shop.publish(RULE_OF_EVENTS)
        for number in range(3):
            sent = {"id": f"e-{number}", "type": "sign_in", "data": {"user_id": "u"}}
            await shop.happen({**sent, "timestamp": instant(shop.now)})
            shop.now += DAY
        before = await held(shop)
        assert await purge_account(shop.engine, shop.account) == 1
        assert await held(shop) != before
        await as_after_a_restart(shop, tmp_path / "killed")


async def test_a_late_payment_reads_what_it_would_read_after_a_restart(tmp_path: Path) -> None:
    """Its window ends earlier, and so reaches back further than data are kept."""
    rule = """rule checkout
  condition many when count(payments by user.id over 2d) > 99 then deny
"""
    async with open_shop(tmp_path / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await shop.publish(WITHOUT_HISTORY, "scorecard", "bot_behaviour")
        await shop.publish(rule)
        await pay(shop, "old", bare())
        shop.now += 2 * DAY + HOUR
        await pay(shop, "new", bare())
        assert await purge_account(shop.engine, shop.account) == 1
        await as_after_a_restart(shop, tmp_path / "killed")


OLD_PAYMENTS = 3


@pytest.mark.parametrize("trouble", ["before the first", "in the middle"])
async def test_what_a_failed_purge_left_is_counted_once_until_the_next(
    tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.journal.retention.CHUNK", 1)
    monkeypatch.setattr("tollkeeper.engine.journal.retention.STEP_S", 0)
    rule = """rule checkout
  condition many when decay(count of payments by user.id half life 2d) > 99 then deny
"""
    async with open_shop(tmp_path / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await shop.publish(rule)
        for number in range(OLD_PAYMENTS):
            await pay(shop, f"old-{number}", bare())
        shop.now += 2 * DAY + 1
        await pay(shop, "new", bare())
        refused = 0 if trouble == "before the first" else 1
        with sqlite3.connect(shop.engine.folder / "tollkeeper.db") as other:
            other.execute(
                "CREATE TRIGGER fails BEFORE DELETE ON journal"
                f" WHEN OLD.id = 'old-{refused}' BEGIN SELECT RAISE(FAIL, 'full'); END"
            )
        with pytest.raises(Unavailable):
            await purge_account(shop.engine, shop.account)
        await as_after_a_restart(shop, tmp_path / "failed")
        with sqlite3.connect(shop.engine.folder / "tollkeeper.db") as other:
            other.execute("DROP TRIGGER fails")
        assert await purge_account(shop.engine, shop.account) == OLD_PAYMENTS - refused
        await as_after_a_restart(shop, tmp_path / "purged")


async def test_an_old_payment_that_cannot_be_read_is_purged_where_damage_is_skipped(
    tmp_path: Path,
) -> None:
    async with open_shop(tmp_path / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        for number in range(OLD_PAYMENTS):
            await pay(shop, f"old-{number}", bare())
        with sqlite3.connect(shop.engine.folder / "tollkeeper.db") as other:
            other.execute("UPDATE journal SET body = '{' WHERE id = 'old-1'")
        shop.engine.damage.policy = "skip"
        shop.now += 2 * DAY + 1
        assert await purge_account(shop.engine, shop.account) == OLD_PAYMENTS


async def test_a_service_whose_newest_entry_was_purged_starts_again_and_gives_its_number_to_none(
    tmp_path: Path,
) -> None:
    monitored = EVENTS + "  monitor many when signs >= 1\n"
    sent = {"type": "sign_in", "data": {"user_id": "u"}}
    async with open_shop(tmp_path / "live") as shop:
        await shop.publish(monitored, "event", "sign_in")
        await shop.happen({**sent, "id": "old", "timestamp": instant(shop.now)})
        last = shop.engine.journal.last_sequence()
        shop.now += 400 * DAY
        assert await purge_account(shop.engine, shop.account) == 1
        assert shop.engine.journal.last_sequence() == last
        now = shop.now
        folder = killed(shop.engine.folder, tmp_path / "killed")
    async with open_shop(folder, now) as again:
        await again.happen({**sent, "id": "new", "timestamp": instant(again.now)})
        assert again.engine.journal.last_sequence() == last + 1
