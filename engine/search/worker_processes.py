"""Start the search index's processes: their arguments, environment and garbage collection."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from tollkeeper.engine.journal.source import Database, JournalSource, folder_of

_DATABASE_VARIABLE = "TOLL_INDEXED_DATABASE"
_COLLECT_AT = (200_000, 50, 1_000)


def command_of(module: str, source: JournalSource) -> list[str]:
    """Return the command line that runs a module of this package on a journal."""
    return [sys.executable, "-m", f"tollkeeper.engine.search.{module}", str(folder_of(source))]


def process_environment(source: JournalSource) -> dict[str, str]:
    """Return the environment for the process. A database's address is passed in it, since any user
    can read a process's arguments.
    """
    return {
        **os.environ,
        **({_DATABASE_VARIABLE: source.url} if isinstance(source, Database) else {}),
    }


def source_of_process() -> JournalSource:
    """Return the journal that this process was started with."""
    folder, address = Path(sys.argv[1]), os.environ.get(_DATABASE_VARIABLE)
    return folder if address is None else Database(address, folder)


def run_collector_rarely() -> None:
    """Run the garbage collector rarely: a step leaves it nothing to free, and it took a fifth of a
    step's time.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AT)
