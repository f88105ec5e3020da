"""Databases that tests left are dropped at the next start, and no others."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tollkeeper.tests.postgres import NAMED, SERVER, drop_abandoned, own_database


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
