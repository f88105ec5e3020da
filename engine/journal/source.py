"""Where a journal is: in a data folder, or in a database with a folder for derived data."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tollkeeper.engine.journal import schema, staging
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.lock import holder, lock, make_folder
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal


@dataclass(frozen=True, slots=True)
class Database:
    """`folder` holds data that each node derives and may lose. `part_of` is the database that it is
    a shard of; None for the first shard, which has no schema and no folder of its own."""

    url: str
    folder: Path
    part_of: Database | None = None


JournalSource: TypeAlias = Path | Database


def folder_of(source: JournalSource) -> Path:
    """The journal's folder on this machine."""
    return source if isinstance(source, Path) else source.folder


def url_of(source: JournalSource) -> str | None:
    """The address of the database, None for a folder."""
    return None if isinstance(source, Path) else source.url


def key_folder_of(source: JournalSource) -> Path:
    """The folder with the secret key, which all shards share."""
    return folder_of(whole_of(source))


def whole_of(source: JournalSource) -> JournalSource:
    """The database with all its shards."""
    if isinstance(source, Database) and source.part_of is not None:
        return source.part_of
    return source


def shard_of(database: Database, number: int) -> Database:
    """One of a database's shards."""
    if number == 1:
        return database
    from tollkeeper.engine.journal.postgres.shards import address_of_shard

    folder = database.folder / f"shard-{number}"
    return Database(address_of_shard(database.url, number), folder, database)


def shards_of(source: JournalSource) -> list[JournalSource]:
    """All journals that the accounts are divided between. Raises `JournalError`."""
    if isinstance(source, Path):
        return [source]
    from tollkeeper.engine.journal.postgres.shards import shards_in

    with closing(connect_to_journal(source)) as connection:
        count = shards_in(connection)
    return [shard_of(source, number) for number in range(1, count + 1)]


def home_of(source: JournalSource, account: str, *, is_new: bool = False) -> JournalSource:
    """The journal that has the account with this name; for a new account, one is assigned now.

    Raises `JournalError`."""
    if isinstance(source, Path):
        return source
    from tollkeeper.engine.journal.postgres import shards

    with closing(connect_to_journal(source)) as connection:
        find = shards.assign_home if is_new else shards.home_of
        return shard_of(source, find(connection, account.partition(":")[0]))


@asynccontextmanager
async def open_source(
    source: JournalSource, purpose: str, *, patience_s: float, waiting_limit: int
) -> AsyncIterator[Journal]:
    """Open the journal for this process alone, until the end of the block.

    Raises `Locked` when another process has held it for `patience_s` seconds, and `JournalError`.
    """
    if isinstance(source, Path):
        async with open_journal(
            source, purpose, patience_s=patience_s, waiting_limit=waiting_limit
        ) as journal:
            yield journal
        return
    from tollkeeper.engine.journal.postgres.journal import open_database

    async with open_database(
        source.url, purpose, patience_s=patience_s, waiting_limit=waiting_limit
    ) as owned:
        with lock(source.folder, purpose):
            yield owned


@asynccontextmanager
async def open_journal_for_reading(source: JournalSource) -> AsyncIterator[Journal]:
    """Open the journal for reading, whoever holds it. Raises `JournalError`."""
    require_current(source)
    if isinstance(source, Path):
        journal: Journal = SqliteJournal(source)
    else:
        from tollkeeper.engine.journal.postgres.journal import read_database

        journal = read_database(source.url)
    try:
        yield journal
    finally:
        await journal.close()


def holder_of_source(source: JournalSource) -> str | None:
    """The purpose for which a running process holds the journal, None when none does."""
    if isinstance(source, Path):
        return holder(source)
    from tollkeeper.engine.journal.postgres.ownership import holder_of

    with closing(connect_to_journal(source)) as connection:
        return holder_of(connection)


def connect_to_journal(source: JournalSource) -> SqlConnection:
    """A connection to write with while another process holds the journal. Raises `JournalError`."""
    if isinstance(source, Path):
        return schema.connect(source)
    from tollkeeper.engine.journal.postgres.connection import connect

    return connect(source.url)


def connect_for_reading(source: JournalSource) -> SqlConnection:
    """A read-only connection. Raises `JournalError`."""
    if isinstance(source, Path):
        return schema.connect_for_reading(source)
    # An extra, which a data folder never needs.
    from tollkeeper.engine.journal.postgres.journal import connect_reader

    return connect_reader(source.url)


def require_data(source: JournalSource) -> None:
    """Check that a data folder has a journal. Raises `JournalError`."""
    if isinstance(source, Path):
        schema.require_data(source)


def require_current(source: JournalSource) -> None:
    """Check that a command and the running service know the same tables."""
    if isinstance(source, Path):
        schema.require_current(source)
    else:
        connect_for_reading(source).close()


def connect_to_stage(source: JournalSource) -> SqlConnection:
    """A connection to stage list contents with, while another process holds the journal."""
    return staging.connect(source) if isinstance(source, Path) else connect_to_journal(source)


def discard_abandoned(connection: SqlConnection, source: JournalSource) -> None:
    """Remove the staged contents of killed imports, unless a running import may need them."""
    if isinstance(source, Path):
        staging.discard_abandoned(connection, source)
    else:
        make_folder(source.folder)
        staging.discard_old(connection, time.time_ns() // 1000 - staging.LONGEST_IMPORT)
