"""A round of retention that can't be done is told in a line, and one that finds an account gone goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.privacy.retention import keep_to_retention, purge_account
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


async def test_of_an_account_that_was_deleted_meanwhile_nothing_is_left_to_purge(
    tmp_path: Path,
) -> None:
    async with open_engine(tmp_path, "serve") as engine:
        assert await purge_account(engine, 99) == 0
