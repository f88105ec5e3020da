"""The journal's errors, and the other types that all databases under it share."""

# ruff: noqa: N818 - an error is named for what happened, as in `except Overloaded`

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from tollkeeper.engine.journal.entries import Kind


class Shard(NamedTuple):
    """One of the `of` journals that a database's accounts are divided between, `number` from 1 on."""

    number: int = 1
    of: int = 1


class CommandRequest(Struct, frozen=True):
    """A command's request to the service: `action` is JSON text, `author` who ran the command."""

    id: int
    action: str
    author: str


EVERY_KIND = frozenset(Kind)
RECORDS = EVERY_KIND - {Kind.CHANGE}


class JournalError(Exception):
    """The journal could not do what was requested; the message is one line for a person."""


class Unavailable(JournalError):
    """The entry wasn't written: the disk is full, read-only or failing, or the journal is closed."""


class Fenced(Unavailable):
    """Another process owns the journal now: this one can't write any more."""


class Overloaded(JournalError):
    """Too many entries wait to be written; the request was not taken."""


class Taken(JournalError):
    """The account has already used the id for an entry of this kind."""


class Damaged(JournalError):
    """Something in the journal can't be read."""


class Locked(JournalError):
    """Another process holds the data folder."""


class Unanswered(JournalError):
    """The service ended before it answered a command; it may have done what was asked."""
