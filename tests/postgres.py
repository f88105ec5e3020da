"""A PostgreSQL database of a test's own; without a server such tests are skipped, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

SERVER = os.environ.get("TOLL_TEST_DATABASE", "postgresql://postgres@127.0.0.1:5432/test")


NAMED = "tollkeeper_test_"
"""What the names of tests' databases begin with."""


@contextmanager
def own_database() -> Iterator[str]:
    """The address of an empty database, dropped in the end."""
    name = f"{NAMED}{uuid4().hex}"
    try:
        server = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"there is no PostgreSQL at TOLL_TEST_DATABASE: {error}".splitlines()[0])
    with server:
        _drop_abandoned_once()
        # Held until this process ends, however it does: without it the database is abandoned.
        assert _lock(server, name)
        server.execute(f"CREATE DATABASE {name}")
        # Tests end processes, never the machine.
        server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        try:
            yield urlunsplit(urlsplit(SERVER)._replace(path=f"/{name}"))
        finally:
            _drop(server, name)


def drop_abandoned() -> None:
    """Drops what processes left that were killed: the databases whose lock nobody holds."""
    with psycopg.connect(SERVER, autocommit=True) as server:
        listed = server.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [NAMED]
        )
        for (name,) in listed.fetchall():
            if _lock(server, name):
                _drop(server, name)


_drop_abandoned_once = cache(drop_abandoned)


def _lock(server: psycopg.Connection, name: str) -> bool:
    found = server.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name]).fetchone()
    assert found is not None
    return bool(found[0])


def _drop(server: psycopg.Connection, name: str) -> None:
    """The database, and the role of its name that a test may have made."""
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute(f"DROP ROLE IF EXISTS {name}")


def empty(url: str) -> None:
    """Takes everything out of a test's database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def keep_made(url: str) -> None:
    """Keeps what the journal's tables have now, which `restore_made` gives them again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_KEEP)


def restore_made(url: str) -> None:
    """The journal's tables as they were kept, of a new identity: without making them again, for which
    the server makes a file for each table and index, and waits for the disk for each of these.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_RESTORE)


_KEEP = """DO $$
DECLARE
  name text;
BEGIN
  CREATE SCHEMA made;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('CREATE TABLE made.%I AS TABLE public.%I', name, name);
  END LOOP;
END $$"""
_RESTORE = """DO $$
DECLARE
  name text;
BEGIN
  SET LOCAL session_replication_role = replica; -- no trigger tells of what is removed
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'made' LOOP
    EXECUTE format('DELETE FROM public.%I', name);
    EXECUTE format('INSERT INTO public.%I SELECT * FROM made.%I', name, name);
  END LOOP;
  FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
    PERFORM setval(format('public.%I', name), 1, false);
  END LOOP;
  UPDATE public.identity SET id = replace(gen_random_uuid()::text, '-', '');
END $$"""
