"""What goes wrong with a journal, and what commands leave in it, whichever database keeps it."""

# ruff: noqa: N818 - an error is named for what happened, as in `except Overloaded`

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import (
    Kind,
)


class Shard(NamedTuple):
    """One of so many journals that share a database's accounts out, `number` from 1 on."""

    number: int = 1
    of: int = 1


class CommandRequest(Struct, frozen=True):
    """What a command asks of the service: `action` is JSON text, `author` who gave the command."""

    id: int
    action: str
    author: str


T = TypeVar("T")

EVERY_KIND = frozenset(Kind)
RECORDS = EVERY_KIND - {Kind.CHANGE}


class JournalError(Exception):
    """The journal couldn't do what was asked; the message is one line for a person."""


class Unavailable(JournalError):
    """The entry wasn't written: the disk is full, read-only or failing, or the journal is closed."""


class Fenced(Unavailable):
    """The journal is another process's by now: nothing can be written here any more."""


class Overloaded(JournalError):
    """Too many entries wait to be written; nothing was done."""


class Taken(JournalError):
    """The account has already used the id for an entry of this kind."""


class Damaged(JournalError):
    """The journal holds something that can't be read."""


class Locked(JournalError):
    """Another process holds the data folder."""


class Unanswered(JournalError):
    """The service ended before it answered a command; it may have done what was asked."""


class JournalTables(Protocol):
    """A database that keeps more than a journal's own tables."""

    async def look(self, query: Callable[[SqlConnection], T]) -> T:
        """What a short query finds."""

    async def run(self, work: Callable[[SqlConnection], T]) -> T:
        """Does `work` in a transaction of its own; done once that is committed."""
