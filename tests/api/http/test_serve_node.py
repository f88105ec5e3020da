"""What a node does before it serves: it waits for who uses the tables it would change."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from tollkeeper.api.http import serve_node
from tollkeeper.api.http.serve_node import shards_there
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.tests.engine.journal.test_fencing import do
from tollkeeper.tests.postgres import own_database

pytestmark = pytest.mark.anyio

TABLES_AT_6 = (
    "DROP TABLE layout, directory; DROP INDEX labels_by_account;"
    " ALTER TABLE tollkeeper_tables DROP COLUMN least;"
    " UPDATE tollkeeper_tables SET version = 6"
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_node_of_a_newer_release_waits_until_the_older_service_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve_node, "AGAIN_S", 0.01)
    with own_database() as url, capture_logs() as logs:
        async with open_database(url, "serve"):
            do(url, TABLES_AT_6)
            starting = asyncio.create_task(shards_there(url, 2))
            while not logs:
                await asyncio.sleep(0.01)
            assert not starting.done()
        assert await starting == 2
    assert "is used by an older version" in logs[0]["reason"]
