"""Journals of their own in each kind of database, and entries to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.engine.journal.postgres.schema import prepare_tables
from tollkeeper.engine.journal.source import Database, JournalSource
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal
from tollkeeper.tests.postgres import empty, keep_made, own_database, restore_made

NOON = 1_760_000_000_000_000
Make = Callable[..., Entry]


@dataclass(frozen=True)
class InFolder:
    """Where a journal is kept; `fresh` gives an empty place of the same kind."""

    folder: Path

    @property
    def source(self) -> JournalSource:
        return self.folder

    def open(self, **options: int) -> AbstractAsyncContextManager[Journal]:
        return open_journal(self.folder, "serve", **options)

    def connect(self) -> closing[SqlConnection]:
        return closing(schema.connect(self.folder))

    def fresh(self) -> InFolder:
        at = self.folder.with_name(f"{self.folder.name}-next")
        return InFolder(at) if not at.exists() else InFolder(at).fresh()

    async def break_writer(self, journal: Journal) -> None:
        """The next commit fails; a connection opened later writes again."""
        # Each commit that needs a page of its own does.
        await journal.run(lambda connection: connection.execute("PRAGMA max_page_count = 1"))


@dataclass(frozen=True)
class InDatabase:
    url: str

    @property
    def source(self) -> JournalSource:
        return Database(self.url, Path("/nowhere"))

    def open(self, **options: int) -> AbstractAsyncContextManager[Journal]:
        return open_database(self.url, "serve", **options)

    def connect(self) -> closing[SqlConnection]:
        return closing(connect(self.url))

    def fresh(self) -> InDatabase:
        restore_made(self.url)
        return self

    async def break_writer(self, journal: Journal) -> None:
        # In that session the name means something else.
        await journal.run(lambda connection: connection.execute("CREATE TEMP TABLE ids ()"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def shared_database() -> Iterator[str]:
    """Of one module: whoever drops another database waits for each file that tests made in this one."""
    with own_database() as url:
        yield url


@pytest.fixture
def database(shared_database: str) -> str:
    """The address of an empty database."""
    empty(shared_database)
    return shared_database


@pytest.fixture(scope="session")
def made_tables() -> Iterator[str]:
    """The address of a database in which the journal's tables are made."""
    with own_database() as url:
        with closing(connect(url)) as connection:
            prepare_tables(connection, url)
        keep_made(url)
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, folder: Path) -> InFolder | InDatabase:
    """Where a journal is kept: what holds of one place must hold of each."""
    if request.param == "sqlite":
        return InFolder(folder)
    return InDatabase(request.getfixturevalue("made_tables")).fresh()


@pytest.fixture
async def journal(place: InFolder | InDatabase) -> AsyncIterator[Journal]:
    async with place.open() as opened:
        yield opened


@pytest.fixture
async def sqlite_journal(folder: Path) -> AsyncIterator[SqliteJournal]:
    async with open_journal(folder, "serve") as opened:
        yield opened


@pytest.fixture(scope="session")
def make() -> Make:
    """An entry; its id is `p` and its sequence number, and one entry arrives each second."""

    def entry(sequence: int, **fields: object) -> Entry:
        arrived = NOON + sequence * 1_000_000
        usual = Entry(
            sequence, 1, Kind.PAYMENT, f"p{sequence}", arrived, arrived, b"body", b"outcome"
        )
        return usual._replace(**fields)

    return entry
