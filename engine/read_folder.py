"""What commands read of a journal, whether or not a service holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.source import JournalSource, open_journal_for_reading
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.state import Configuration, fold_changes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Picture:
    """What is configured at this moment, and the journal it was folded from, for reads alone."""

    journal: Journal
    state: Configuration


@asynccontextmanager
async def open_picture(source: JournalSource) -> AsyncIterator[Picture]:
    """The journal as it is on disk. Takes no lock and writes nothing; raises `JournalError`."""
    async with open_journal_for_reading(source) as journal:
        yield Picture(
            journal, fold_changes(Configuration(), recorded_changes(await journal.changes()))
        )


def read_folder(source: JournalSource, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """What `ask` finds in the journal, for a command. Raises `JournalError`, and what `ask` does."""

    async def read() -> T:
        async with open_picture(source) as picture:
            return await ask(picture)

    return asyncio.run(read())
