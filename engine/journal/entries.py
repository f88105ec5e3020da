"""What the journal holds: everything that happened and everything that was configured."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct


class Kind(IntEnum):
    """What an entry tells. A change is one of the configuration, an access requests for what tells of
    persons; read back, they are the audit log.
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
"""What retention and erasure remove or rewrite is told to whoever follows the journal."""


class Entry(NamedTuple):
    """One line of the journal.

    `sequence` is the entry's position in the one sequence, `kind` a `Kind`; `arrived` and `time`
    (the event time) are microseconds since 1970 in UTC. `id` is the payment's for a payment and its
    updates, shadows, labels and notes, the event's for an event, the changed thing's name for a change,
    the key's for an access.
    `body` and `outcome` are encoded by the caller and mean nothing here.
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
    """What sequence numbers beyond `after` up to `sequence` brought, each payment once.

    `fresh` are events, and payments as known at its end: the entry of the creation with the body of
    the last update. `amended` are payments created before it that were updated in it, each as known
    before and as known at its end.
    """

    fresh: list[Entry]
    amended: list[tuple[Entry, Entry]]
    after: int
    sequence: int


class Idempotency(Struct, frozen=True, gc=False):
    """A key sent with a request, the digest of the request's body, and the response it got."""

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
    """Adds the entries to a list, or renews those whose value it has."""

    list: str
    entries: tuple[ListEntry, ...]


class Removal(Struct, frozen=True):
    """Takes the values from a list; one that isn't there is passed over."""

    list: str
    values: tuple[str, ...]


class Replacement(Struct, frozen=True):
    """Makes a staged content the list's, in place of all it had."""

    list: str
    content: int


ListChange = Addition | Removal | Replacement
