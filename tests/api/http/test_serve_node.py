"""What a node does before it serves: it waits for who uses the tables it would change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copy
from signal import SIGTERM
from weakref import ref

import httpx
import psycopg
import pytest
from structlog.testing import capture_logs

from tollkeeper.api.http import serve_node, serve_shard
from tollkeeper.api.http.serve_node import shards_there
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.postgres import schema
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.engine.journal.postgres.shards import address_of_shard
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.series import Series
from tollkeeper.engine.velocity.snapshot import FILE
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.happenings import RULE
from tollkeeper.tests.engine.offline.backtest.shop import open_shop
from tollkeeper.tests.postgres import own_database
from tollkeeper.tests.service.process import HOST, PATIENCE_S, reserved_port, serving
from tollkeeper.tests.service.test_nodes import whole

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def add_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is opened from now on is of a release whose tables are newer."""
    newer = (*schema._MIGRATIONS, schema.Migration("CREATE TABLE of_a_newer_release ()"))
    monkeypatch.setattr(schema, "_MIGRATIONS", newer)
    monkeypatch.setattr(schema, "NEWEST_TABLES", len(newer))


async def test_a_node_of_a_newer_release_waits_until_the_older_service_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve_node, "AGAIN_S", 0.01)
    with own_database() as url, capture_logs() as logs:
        async with open_database(url, "serve"):
            add_migration(monkeypatch)
            starting = asyncio.create_task(shards_there(url, 2))
            while not logs:
                await asyncio.sleep(0.01)
            assert not starting.done()
        assert await starting == 2
    assert "is used by an older version" in logs[0]["reason"]


@asynccontextmanager
async def starting(folder: Path, url: str) -> AsyncIterator[str]:
    """A node that starts meanwhile, where it answers; told to end in the end."""
    with reserved_port() as port:
        settings = Settings(folder=folder, database=url, port=port)
        serving = serve_node.serve_node(settings, OpenId(), lambda _share: None)
        node = asyncio.create_task(serving)
        try:
            yield f"http://{HOST}:{port}"
            assert not node.done()
            os.kill(os.getpid(), SIGTERM)
            await asyncio.wait_for(node, PATIENCE_S)
        finally:
            node.cancel()
            await asyncio.wait([node])


def break_opening(monkeypatch: pytest.MonkeyPatch, times: Iterator[int]) -> asyncio.Semaphore:
    """The database ends the connections over which a journal is opened, so often; each time is told."""
    broken, take_kept = asyncio.Semaphore(0), serve_shard.take_kept

    async def take(*arguments: object) -> None:
        if next(times, None) is not None:
            broken.release()
            raise Unavailable("terminating connection due to administrator command")
        await take_kept(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(serve_shard, "take_kept", take)
    monkeypatch.setattr(serve_shard, "AGAIN_S", 0.01)
    return broken


async def test_a_node_whose_database_goes_while_it_starts_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_opening(monkeypatch, iter(range(3)))
    with own_database() as url:
        async with starting(tmp_path, url) as address:
            await until_ready(address)


async def until_ready(address: str) -> None:
    status = 0
    async with httpx.AsyncClient(verify=False) as client:
        while status != 200:
            await asyncio.sleep(0.05)
            try:
                status = (await client.get(f"{address}/health/ready")).status_code
            except httpx.TransportError:
                status = 0


async def test_an_owner_whose_commits_are_never_answered_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_shard, "ENDS_S", 0.1)
    with own_database() as url:
        async with starting(tmp_path, url) as address:
            await until_ready(address)
            # What every append and every renewal changes, as a commit that no standby confirms does.
            holding = await psycopg.AsyncConnection.connect(url)
            await holding.execute("SELECT 1 FROM shards FOR UPDATE")
            while (await (await holding.execute(WAITING)).fetchall()) == [(0,)]:
                await asyncio.sleep(0.05)
        await holding.close()


WAITING = (
    "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE NOT granted AND datname = current_database()"
)


async def test_a_node_that_waits_for_its_database_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = break_opening(monkeypatch, iter(int, 1))
    with own_database() as url:
        async with starting(tmp_path, url):
            for _ in range(3):
                await broken.acquire()


SLOWLY = """
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_sleep(1);
  RETURN NEW;
END $$;
CREATE TRIGGER slowly BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION wait();
"""
WRITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event = 'PgSleep' AND datname = current_database()"
)


async def test_a_node_that_has_ended_is_among_the_nodes_no_more_though_its_heartbeat_takes_long(
    tmp_path: Path,
) -> None:
    with own_database() as url, psycopg.connect(url, autocommit=True) as connection:
        async with starting(tmp_path, url) as address:
            await until_ready(address)
            connection.execute(SLOWLY)
            while connection.execute(WRITING).fetchone() == (0,):
                await asyncio.sleep(0.02)
        assert connection.execute("SELECT count(*) FROM nodes").fetchone() == (0,)


async def test_a_node_that_joins_restores_one_shard_after_the_other_to_own_the_first_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_windows, restoring, side_by_side = serve_shard.fill_windows, set[Path](), set[Path]()

    async def fill(engine: Engine, progress: Progress) -> None:
        assert (engine.folder / FILE).exists()
        side_by_side.update(restoring)
        restoring.add(engine.folder)
        # Time for the other shard to come as far.
        await asyncio.sleep(0.5)
        await fill_windows(engine, progress)
        restoring.remove(engine.folder)

    with own_database() as url:
        monkeypatch.setenv("TOLL_DATABASE", url)
        with serving(tmp_path / "0", ("--shards", "2")):
            (tmp_path / "1").mkdir()
            copy(tmp_path / "0" / KEY_FILE, tmp_path / "1")
            monkeypatch.setattr(serve_shard, "fill_windows", fill)
            async with starting(tmp_path / "1", url) as address:
                await until_ready(address)
                for number in (1, 2):
                    while await asyncio.to_thread(whole, address_of_shard(url, number)) < 2:
                        await asyncio.sleep(0.05)
    assert not side_by_side


ANOTHERS = "SELECT count(*) FROM shards WHERE owner = 'another'"


async def test_a_node_that_opens_its_journal_again_keeps_no_windows_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_windows, left = serve_shard.fill_windows, list[int]()
    opened = list[tuple[ref[Windows], list[ref[Series]]]]()

    async def fill(engine: Engine, progress: Progress) -> None:
        left.append(sum(series() is not None for _, held in opened for series in held))
        await fill_windows(engine, progress)
        accounts = engine.windows._accounts.values()
        held = [ref(each) for account in accounts for each in account._whole.windows.values()]
        opened.append((ref(engine.windows), held))

    monkeypatch.setattr(serve_shard, "fill_windows", fill)
    with own_database() as url, psycopg.connect(url, autocommit=True) as connection:
        async with open_shop(Database(url, tmp_path / "before")) as shop:
            await shop.publish(RULE)
        (tmp_path / "node").mkdir()
        copy(tmp_path / "before" / KEY_FILE, tmp_path / "node")
        async with asyncio.timeout(PATIENCE_S), starting(tmp_path / "node", url) as address:
            for times in (1, 2, 3):
                while len(opened) < times or connection.execute(ANOTHERS).fetchone() != (0,):
                    await asyncio.sleep(0.01)
                await until_ready(address)
                if times < 3:
                    connection.execute("UPDATE shards SET epoch = epoch + 1, owner = 'another'")
            assert opened[0][1]
            assert left == [0, 0, 0]
            assert opened[0][0]() is None
