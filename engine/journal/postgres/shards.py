"""A database's shards: independent journals, each in a schema of its own with an owner of its own.

The first is in the schema that the address leads to. Its tables say how many shards there are, which
is fixed when the database is first opened, and which one each account is in.
"""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Shard, Unavailable
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, connect, shown_address
from tollkeeper.engine.journal.postgres.ownership import IS_HELD, standing_of
from tollkeeper.engine.journal.postgres.schema import (
    MIGRATION_LOCK,
    has_current_tables,
    prepare_tables,
)

_LAYOUT = "SELECT shard, shards FROM layout"
_IS_NEW = f"SELECT last_place = 0 AND NOT {IS_HELD} FROM shards"
_HOME = "SELECT shard FROM directory WHERE account = ?"
_ASSIGN = (
    "INSERT INTO directory SELECT ?, shard FROM generate_series(1, ?) AS shard"
    " ORDER BY (SELECT count(*) FROM directory AS other WHERE other.shard = shard.shard), shard"
    " LIMIT 1 ON CONFLICT DO NOTHING"
)


def address_of_shard(url: str, number: int) -> str:
    """The address under which a shard's tables are found by their names alone."""
    if number == 1:
        return url
    options = conninfo_to_dict(url).get("options") or ""
    return make_conninfo(url, options=f"{options} -c search_path=shard_{number}".lstrip())


def layout_of(connection: SqlConnection) -> Shard:
    """Which shard a connection leads to, and how many there are."""
    return Shard(*connection.execute(_LAYOUT).fetchone())


def open_shards(url: str, wanted: int | None) -> int:
    """Create what tables are missing, in a new database those of `wanted` shards; returns how many
    shards there are.

    Raises `JournalError` when the database has another number of shards already.
    """
    with closing(connect(url)) as connection:
        if not has_current_tables(connection, url):
            prepare_tables(connection, url)
        count = layout_of(connection).of
        if wanted in (None, count):
            return count
        with connection.raw.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
            count = layout_of(connection).of
            ((is_new,),) = connection.execute(_IS_NEW).fetchall()
            if count == 1 and is_new:
                _make_shards(connection, url, wanted)
                count = wanted
        if count != wanted:
            raise JournalError(
                f"`{shown_address(url)}` has {count} shards, not {wanted}: how many is settled when"
                " a database is first served"
            )
        return count


def _make_shards(connection: PostgresConnection, url: str, count: int) -> None:
    connection.execute("UPDATE layout SET shards = ?", (count,))
    for number in range(2, count + 1):
        connection.raw.execute(f"CREATE SCHEMA shard_{number}")
        connection.raw.execute(f"SET LOCAL search_path = shard_{number}")
        prepare_tables(connection, url)
        connection.execute("UPDATE layout SET shard = ?, shards = ?", (number, count))


def owner_addresses(urls: Sequence[str]) -> list[str]:
    """The address of each shard's owner, empty for a shard without a known owner."""
    addresses: list[str] = []
    with suppress(psycopg.Error, Unavailable):
        for url in urls:
            with closing(connect(url)) as connection:
                standing = standing_of(connection)
            addresses.append(standing.address if standing.is_held else "")
    # After a failure, the rest stays unknown: a start must not wait for the database once per shard.
    return addresses + [""] * (len(urls) - len(addresses))


def home_of(connection: SqlConnection, account: str) -> int:
    """The shard of the account with this name; the first for an account that has none assigned."""
    if connection.execute("SELECT to_regclass('directory')").fetchone()[0] is None:
        return 1
    found = connection.execute(_HOME, (account,)).fetchone()
    return 1 if found is None else int(found[0])


def assign_home(connection: SqlConnection, account: str) -> int:
    """The shard of a new account: the first of those with the fewest accounts, unless the name has
    one assigned already."""
    if connection.execute("SELECT to_regclass('directory')").fetchone()[0] is not None:
        connection.execute(_ASSIGN, (account, layout_of(connection).of))
    return home_of(connection, account)


def shards_in(connection: SqlConnection) -> int:
    """How many shards a database has, 1 before its tables are created."""
    if connection.execute("SELECT to_regclass('layout')").fetchone()[0] is None:
        return 1
    return layout_of(connection).of
