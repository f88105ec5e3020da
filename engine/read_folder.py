"""Read a journal for a command, whether or not a service is running on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.source import JournalSource, open_journal_for_reading
from tollkeeper.engine.registry.past_states import configuration_at
from tollkeeper.engine.registry.state import Configuration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Picture:
    """The configuration at one moment, and the journal that it was folded from, open for reading."""

    journal: Journal
    state: Configuration


@asynccontextmanager
async def open_picture(source: JournalSource) -> AsyncIterator[Picture]:
    """Open the journal without a lock and without writing. Raises `JournalError`."""
    async with open_journal_for_reading(source) as journal:
        yield Picture(journal, await journal.query(configuration_at))


def read_folder(source: JournalSource, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """Run `ask` on the journal, for a command. Raises `JournalError`, and what `ask` raises."""

    async def read() -> T:
        async with open_picture(source) as picture:
            return await ask(picture)

    return asyncio.run(read())
