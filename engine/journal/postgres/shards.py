"""A database's shards: journals beside each other, each in a schema of its own with its own owner.

The first is where the address leads by itself. It tells how many there are, which is settled when the
database is first opened, and in which one each account is.
"""

from __future__ import annotations

from contextlib import closing

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Shard
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, connect, shown_address
from tollkeeper.engine.journal.postgres.schema import MAKING, has_current_tables, prepare_tables

_LAYOUT = "SELECT shard, shards FROM layout"
_IS_NEW = "SELECT last_place = 0 AND lease_until < clock_timestamp() FROM shards"
_HOME = "SELECT shard FROM directory WHERE account = ?"
_SETTLE = (
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
    """Which shard a connection leads to, and of how many."""
    return Shard(*connection.execute(_LAYOUT).fetchone())


def open_shards(url: str, wanted: int | None) -> int:
    """How many shards a database has, each with its tables; `wanted` of one that is new.

    Raises `JournalError` where it has another number already.
    """
    with closing(connect(url)) as connection:
        if not has_current_tables(connection, url):
            prepare_tables(connection, url)
        there = layout_of(connection).of
        if wanted in (None, there):
            return there
        with connection.raw.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(?)", (MAKING,))
            there = layout_of(connection).of
            ((is_new,),) = connection.execute(_IS_NEW).fetchall()
            if there == 1 and is_new:
                _make_shards(connection, url, wanted)
                there = wanted
        if there != wanted:
            raise JournalError(
                f"`{shown_address(url)}` has {there} shards, not {wanted}: how many is settled when"
                " a database is first served"
            )
        return there


def _make_shards(connection: PostgresConnection, url: str, count: int) -> None:
    connection.execute("UPDATE layout SET shards = ?", (count,))
    for number in range(2, count + 1):
        connection.raw.execute(f"CREATE SCHEMA shard_{number}")
        connection.raw.execute(f"SET LOCAL search_path = shard_{number}")
        prepare_tables(connection, url)
        connection.execute("UPDATE layout SET shard = ?, shards = ?", (number, count))


def home_of(connection: SqlConnection, account: str) -> int:
    """The shard of an account by its name; the first for one that nobody has settled."""
    if connection.execute("SELECT to_regclass('directory')").fetchone()[0] is None:
        return 1
    found = connection.execute(_HOME, (account,)).fetchone()
    return 1 if found is None else int(found[0])


def assign_home(connection: SqlConnection, account: str) -> int:
    """The shard of an account that is to be made: of those with the fewest accounts the first, unless
    the name had one before."""
    if connection.execute("SELECT to_regclass('directory')").fetchone()[0] is not None:
        connection.execute(_SETTLE, (account, layout_of(connection).of))
    return home_of(connection, account)


def shards_in(connection: SqlConnection) -> int:
    """How many shards a database has, also before its tables are made."""
    if connection.execute("SELECT to_regclass('layout')").fetchone()[0] is None:
        return 1
    return layout_of(connection).of
