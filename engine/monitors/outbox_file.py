"""The file that keeps the list of alerts and the outbox.

Without it, the next start lists all alerts again and sends them again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.side_file import SideFile, create_file
from tollkeeper.engine.monitors import outbox

FILE = "alerts.db"


@asynccontextmanager
async def open_outbox(folder: Path) -> AsyncIterator[SideFile]:
    """The outbox of a data folder whose lock is held. Raises `JournalError` for an unusable file."""
    path = folder / FILE
    try:
        create_file(path)
        file = SideFile(path, "FULL")
        await file.write(outbox.prepare)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield file
    finally:
        file.close()
