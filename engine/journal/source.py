"""Where a journal is: in a data folder, or in a database with a folder for what is derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.connection import SqlConnection


@dataclass(frozen=True, slots=True)
class Database:
    """`folder` holds what each node works out for itself and may lose."""

    url: str
    folder: Path


JournalSource: TypeAlias = Path | Database


def folder_of(source: JournalSource) -> Path:
    """The folder on this machine."""
    return source if isinstance(source, Path) else source.folder


def connect_for_reading(source: JournalSource) -> SqlConnection:
    """A connection that sees what is committed and changes nothing. Raises `JournalError`."""
    if isinstance(source, Path):
        return schema.connect_for_reading(source)
    # An extra, which a data folder never needs.
    from tollkeeper.engine.journal.postgres.journal import connect_reader

    return connect_reader(source.url)


def require_current(source: JournalSource) -> None:
    """Checks, for a command beside a running service, that both know the same tables."""
    if isinstance(source, Path):
        schema.require_current(source)
    else:
        connect_for_reading(source).close()
