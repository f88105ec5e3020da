"""What commands read of a data folder, whether or not a service holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import Journal
from tollkeeper.engine.journal.sqlite import SqliteJournal
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.state import Configuration, fold_changes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Picture:
    """What is configured at this moment, and the journal it was folded from, for reads alone."""

    journal: Journal
    state: Configuration


@asynccontextmanager
async def open_picture(folder: Path) -> AsyncIterator[Picture]:
    """The folder as it is on disk. Takes no lock and writes nothing; raises `JournalError`."""
    schema.require_current(folder)
    journal = SqliteJournal(folder)
    try:
        yield Picture(
            journal, fold_changes(Configuration(), recorded_changes(await journal.changes()))
        )
    finally:
        await journal.close()


def read_folder(folder: Path, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """What `ask` finds in the folder, for a command. Raises `JournalError`, and what `ask` does."""

    async def read() -> T:
        async with open_picture(folder) as picture:
            return await ask(picture)

    return asyncio.run(read())
