"""The policy for entries that can't be read: stop, skip them, or serve reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tollkeeper.engine.journal.contract import Damaged, JournalError
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.journal.inspect import name_entry
from tollkeeper.engine.journal.schema import DATABASE_FILE
from tollkeeper.engine.log import get_logger

Policy: TypeAlias = Literal["stop", "skip", "read-only"]
"""`stop` ends the service, `skip` serves without the damaged entries, `read-only` fills no windows
and accepts no payments or changes."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)
_ADVICE = 'find all damage with `toll verify`, and restore a backup (docs/operate.md, "Damage")'


@dataclass(slots=True)
class Damage:
    """`passed_over` are the sequence numbers of entries that were skipped: no window counts them."""

    policy: Policy = "stop"
    passed_over: set[int] = field(default_factory=set)

    def meet(self, entry: Entry, error: Exception) -> None:
        """Skip an entry and log that, or raise `Damaged`, as the policy says."""
        message = f"{name_entry(entry)} of `{DATABASE_FILE}` can't be read: {error}"
        if self.policy != "skip":
            raise Damaged(f"{message}; {_ADVICE}, or start with `--damage skip`") from error
        if entry.sequence not in self.passed_over:
            self.passed_over.add(entry.sequence)
            get_logger().error("entry_passed_over", sequence=entry.sequence, reason=message)


@contextmanager
def named_damage() -> Iterator[None]:
    """Turn SQLite's errors about a damaged file into `Damaged`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise Damaged(f"`{DATABASE_FILE}` can't be read: {error}; {_ADVICE}") from error


@contextmanager
def named_target(target: Path) -> Iterator[None]:
    """Turn the system's errors about writing to a folder into `JournalError`s that name it."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"`{target}` can't be written: {error.strerror or error}") from error
