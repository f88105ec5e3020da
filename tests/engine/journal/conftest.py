"""Journals in folders of their own, and entries to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal

NOON = 1_760_000_000_000_000
Make = Callable[..., Entry]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def journal(folder: Path) -> AsyncIterator[SqliteJournal]:
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
