"""What a node does before it serves: it waits for who uses the tables it would change."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from tollkeeper.api.http import serve_node
from tollkeeper.api.http.serve_node import shards_there
from tollkeeper.engine.journal.postgres import schema
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.tests.postgres import own_database

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
