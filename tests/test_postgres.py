"""Databases that tests left are dropped at the next start, and no others; tables can be restored."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.schema import prepare_tables
from tollkeeper.tests.postgres import (
    NAMED,
    SERVER,
    drop_abandoned,
    keep_made,
    own_database,
    restore_made,
)


def is_there(name: str) -> bool:
    with psycopg.connect(SERVER) as server:
        asked = server.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        return asked.fetchone() is not None


def test_a_database_that_nobody_holds_is_dropped_and_one_that_is_held_stays() -> None:
    with own_database() as url:
        held, abandoned = urlsplit(url).path.removeprefix("/"), f"{NAMED}{uuid4().hex}"
        with psycopg.connect(SERVER, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {abandoned}")
        drop_abandoned()
        assert not is_there(abandoned)
        assert is_there(held)
    assert not is_there(held)


LISTED = "INSERT INTO list_contents (account, list, staged) VALUES (1, 'blocked', 0)"
WRITTEN = f"""{LISTED}; INSERT INTO journal VALUES (1, 1, 1, 'p', 0, 0, '', '', 0);
  UPDATE shards SET epoch = 7, last_place = 1; DELETE FROM journal"""


def contents(connection: psycopg.Connection) -> dict[str, list[tuple[str]]]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {
        name: connection.execute(f"SELECT each::text FROM {name} AS each ORDER BY 1").fetchall()
        for (name,) in tables.fetchall()
    }


def test_restored_tables_hold_what_they_held_when_they_were_kept_but_another_identity() -> None:
    with own_database() as url:
        with closing(connect(url)) as connection:
            prepare_tables(connection, url)
        keep_made(url)
        with psycopg.connect(url, autocommit=True) as connection:
            made = contents(connection)
            connection.execute(WRITTEN)
            written = contents(connection)
            restore_made(url)
            restored = contents(connection)
            assert connection.execute(f"{LISTED} RETURNING id").fetchall() == [(1,)]
    changed = {name for name in made if made[name] != written[name]}
    assert changed >= {"shards", "list_contents", "amendments", "numbers"}
    assert {name for name in made if made[name] != restored[name]} == {"identity"}
