"""What the processes beside a service have in common: how they are started, and what they spare it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from tollkeeper.engine.journal.source import Database, JournalSource, folder_of

_DATABASE_VARIABLE = "TOLL_INDEXED_DATABASE"
_COLLECT_AT = (200_000, 50, 1_000)


def command_of(module: str, source: JournalSource) -> list[str]:
    """The arguments that start a module of this package with a journal."""
    return [sys.executable, "-m", f"tollkeeper.engine.search.{module}", str(folder_of(source))]


def process_environment(source: JournalSource) -> dict[str, str]:
    """The environment with a database's address, which others could read among the arguments."""
    return {
        **os.environ,
        **({_DATABASE_VARIABLE: source.url} if isinstance(source, Database) else {}),
    }


def source_of_process() -> JournalSource:
    """The journal that this process was started with."""
    folder, address = Path(sys.argv[1]), os.environ.get(_DATABASE_VARIABLE)
    return folder if address is None else Database(address, folder)


def spare_collector() -> None:
    """Has the collector look seldom: a step leaves nothing to it, and it took a fifth of one."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AT)
