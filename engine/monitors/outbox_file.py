"""The file that keeps the list of alerts and the outbox.

Without it, the next start lists all alerts again and sends them again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar

from tollkeeper.engine.journal.contract import Journal, JournalError
from tollkeeper.engine.journal.side_file import SideFile, claim_file, create_file, stands_beside
from tollkeeper.engine.monitors import outbox

ALERTS_FILE = "alerts.db"
T = TypeVar("T")
_WHAT_TO_DO = "restore a backup, or move this file away to list and send all alerts again"


@asynccontextmanager
async def open_outbox(folder: Path, journal: Journal) -> AsyncIterator[SideFile]:
    """The outbox of a data folder whose lock is held.

    Raises `JournalError` for an unusable file, and for one that belongs to another journal or
    knows more than this one has: alerts would be lost unseen.
    """
    path = folder / ALERTS_FILE
    try:
        create_file(path)
        if not stands_beside(path, journal.identity()):
            raise JournalError(f"`{path}` belongs to another journal: {_WHAT_TO_DO}")
        file = SideFile(path, "FULL")
        await file.write(outbox.create_tables)
        claim_file(path, journal.identity())
        known, last = file.read(outbox.listed_up_to), journal.last_sequence()
        if known > last:
            file.close()
            raise JournalError(
                f"`{path}` knows of entry {known}, but the journal ends with {last}: it is an older"
                f" copy, or one without its `-wal` file; {_WHAT_TO_DO}"
            )
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield file
    finally:
        file.close()


def read_outbox(folder: Path, query: Callable[[sqlite3.Connection], T]) -> T:
    """What a query finds in the outbox of a folder, whether or not a service holds it.

    Raises `JournalError`.
    """
    path = folder / ALERTS_FILE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found:
            return query(found)
    except sqlite3.Error as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
