"""A PostgreSQL database of a test's own; without a server such tests are skipped, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

SERVER = os.environ.get("TOLL_TEST_DATABASE", "postgresql://postgres@127.0.0.1:5432/test")


@contextmanager
def own_database() -> Iterator[str]:
    """The address of an empty database, dropped in the end."""
    name = f"toll_test_{uuid4().hex}"
    try:
        server = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"there is no PostgreSQL at TOLL_TEST_DATABASE: {error}".splitlines()[0])
    with server:
        server.execute(f"CREATE DATABASE {name}")
        # Tests end processes, never the machine.
        server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        try:
            yield urlunsplit(urlsplit(SERVER)._replace(path=f"/{name}"))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def empty(url: str) -> None:
    """Takes everything out of a test's database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
