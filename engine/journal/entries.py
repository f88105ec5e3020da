"""The entries of the journal: everything that happened and every change of the configuration."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct


class Kind(IntEnum):
    """The kinds of entries. `CHANGE` is a change of the configuration, `ACCESS` reads of personal
    data; these two are the audit log.
    """

    PAYMENT = 1
    UPDATE = 2
    EVENT = 3
    CHANGE = 4
    SHADOW = 5
    LABEL = 6
    ACCESS = 7
    NOTE = 8


AMENDABLE = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.LABEL, Kind.NOTE)
"""Kinds whose removal or rewriting is recorded as an amendment, for readers that follow the
journal."""


class Entry(NamedTuple):
    """One line of the journal.

    `sequence` is the entry's position in the one sequence, `kind` a `Kind`; `arrived` and `time`
    (the event time) are microseconds since 1970 in UTC. `id` is the payment's for a payment and its
    updates, shadows, labels and notes, the event's for an event, the changed thing's name for a
    change, the key's for an access. `body` and `outcome` are encoded by the caller and mean nothing
    here.
    """

    sequence: int
    account: int
    kind: int
    id: str
    arrived: int
    time: int
    body: bytes
    outcome: bytes | None = None


class Stretch(NamedTuple):
    """The records with sequence numbers in (`after`, `sequence`], each payment once.

    `fresh` are events and new payments, these with the body of their last update in the stretch.
    `amended` are older payments that were updated in it: the state before the stretch, and at its
    end.
    """

    fresh: list[Entry]
    amended: list[tuple[Entry, Entry]]
    after: int
    sequence: int


class Idempotency(Struct, frozen=True, gc=False):
    """An idempotency key, the digest of the request's body, and the response that was sent."""

    key: str
    digest: bytes
    response: bytes


class Page(Struct, frozen=True):
    """Entries, newest first. `cursor` continues the reading, None at its end.

    A page may hold fewer entries than asked for, even none, and still have a cursor.
    """

    entries: list[Entry]
    cursor: int | None


class ListEntry(Struct, frozen=True, gc=False):
    """One value of a list or row of a table: `columns` is JSON text, `expires_at` microseconds."""

    value: str
    columns: str | None = None
    expires_at: int | None = None
    note: str | None = None
    by: str | None = None


class Addition(Struct, frozen=True):
    """Add entries to a list; an entry with the same value is replaced."""

    list: str
    entries: tuple[ListEntry, ...]


class Removal(Struct, frozen=True):
    """Remove values from a list; unknown ones are ignored."""

    list: str
    values: tuple[str, ...]


class Replacement(Struct, frozen=True):
    """Replace all of a list's entries by a staged content."""

    list: str
    content: int


ListChange = Addition | Removal | Replacement
