"""What the rest of the engine can ask of a journal, whichever database keeps it."""

# ruff: noqa: N818 - an error is named for what happened, as in `except Overloaded`

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from tollkeeper.engine.journal.checksums import BLOCK
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import (
    Entry,
    Idempotency,
    Kind,
    ListChange,
    ListEntry,
    Page,
    Stretch,
)


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


class Journal(Protocol):
    """An append-only sequence of entries; the order of appends is the order of sequence numbers.

    Reads see what is on disk; where said, also what is being written. `replay`, `replay_latest` and
    `count` block and are for other threads than the event loop's.
    """

    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        """Writes the entry with all that goes with it, or nothing; done once it is on disk.

        The entry is queued by the call itself, not by the await, and handed to be written when the
        event loop turns. Places must grow; gaps are allowed. The call raises `Overloaded`,
        `Unavailable` (closed) or ValueError (a sequence number not beyond the last). The future
        raises `Taken`, or `Unavailable`; then all that was queued behind it, or is before the event
        loop has turned once more, is refused too, since it may have been decided from what is now
        lost. Await it directly and undo what it stood for in the same step: later appends count on
        that. It can't be cancelled: a task that is cancelled while it waits is woken once the
        future is done, and undoes what it must.
        """

    def has_room(self) -> bool:
        """Whether an append would be queued now, rather than `Overloaded`."""

    def queue_length(self) -> int:
        """How many appends wait to be written."""

    def last_appended(self) -> int:
        """The last sequence number of an entry that was handed over, written or not."""

    def unsettled(self) -> list[asyncio.Future[None]]:
        """What becomes of each entry that was handed over and is neither written nor lost."""

    def write_failures(self) -> int:
        """How many times nothing could be written since it was opened."""

    def write_failure(self) -> str | None:
        """Why nothing can be written at the moment; None when the last commit was kept."""

    async def set_clock(self, trusted: int) -> None:
        """Keeps the last moment (µs) at which the clock was found plausible.

        What it writes is on disk, so it also tells whether anything can be. Raises `Unavailable`.
        """

    def trusted_clock(self) -> int:
        """That moment, 0 when there was none yet."""

    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        """Whether the account has an entry of this kind and id, written or being written."""

    async def states(self, account: int, record_id: str) -> list[Entry]:
        """A payment's creation and updates, oldest first, also those being written."""

    async def of_record(self, account: int, kind: Kind, record_id: str) -> list[Entry]:
        """The account's entries of this kind and id, oldest first, also those being written."""

    async def entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence number."""

    async def find_idempotency(self, account: int, key: str, now: int) -> Idempotency | None:
        """What a key was used for in the 24 hours before `now`; waits for a first use being
        written.
        """

    async def latest(
        self,
        account: int,
        kind: Kind,
        *,
        since: int = 0,
        wanted: Callable[[Entry], bool] = lambda _entry: True,
        cursor: int | None = None,
        limit: int = 100,
    ) -> Page:
        """The account's entries of a kind that are `wanted`, newest first, none arrived before
        `since`.

        `wanted` is called in another thread. Work for one page is bounded, see `Page`.
        """

    async def changes(self, after: int = 0) -> list[Entry]:
        """Every account's configuration changes beyond a sequence number, oldest first."""

    def last_sequence(self) -> int:
        """The highest sequence number on disk, 0 in an empty journal."""

    def replay(
        self,
        account: int | None = None,
        *,
        since: int = 0,
        after: int = 0,
        up_to: int | None = None,
        kinds: Collection[Kind] = EVERY_KIND,
    ) -> Iterator[list[Entry]]:
        """Batches in order of sequence number: sequence numbers in (after, up_to], event time at or
        past `since`.

        `account` None means all; `up_to` None means the last sequence number at the time of the
        call.
        """

    def replay_latest(
        self,
        account: int,
        *,
        since: int = 0,
        after: int = 0,
        up_to: int,
        kinds: Collection[Kind] = EVERY_KIND,
    ) -> Iterator[Stretch]:
        """What is known of payments and events as of `up_to`, read stretch by stretch.

        As `replay` takes its parameters; of `kinds` payments, which bring their updates, and
        events.
        """

    def entries_between(
        self, account: int, times: tuple[int, int], *, up_to: int, most: int
    ) -> list[Entry] | None:
        """The payments, as known at the sequence number `up_to`, and events of event times from the
        first to the last of `times` (µs) and sequence numbers up to it, oldest sequence number
        first.

        None when more than `most` entries would have to be looked through. Blocks as `replay`.
        """

    def entries_back(
        self, account: int, times: tuple[int, int], *, up_to: int, before: int, most: int
    ) -> list[Entry]:
        """The same of sequence numbers smaller than `before`, the newest first, at most `most`."""

    def count(self, account: int | None = None, *, since: int = 0, after: int = 0) -> int:
        """About how many entries a `replay` of every kind passes; never fewer."""

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        """A list's entries, expired ones included, in batches ordered by value from `beyond` on."""

    def record_entries(self, account: int, kind: Kind, record_id: str, up_to: int) -> list[Entry]:
        """The account's entries of this kind and id up to a sequence number, oldest first.

        Blocks as `replay`.
        """

    def list_entries_at(
        self, account: int, list_name: str, sequence: int, values: Sequence[str]
    ) -> list[ListEntry]:
        """A list's entries of these values, a few hundred at most, as a payment at `sequence` met
        them.

        As far back as the account keeps its history. Blocks as `replay`.
        """

    def count_staged(self, account: int, list_name: str, content: int) -> int | None:
        """How many entries are staged for the list under `content`; None when nothing is.

        A staged content is filled beside the list's own, to be put in its place by a `Replacement`.
        """

    def staged_entries(self, content: int) -> Iterator[ListEntry]:
        """The entries of a staged content, ordered by value."""

    def discard_abandoned(self) -> None:
        """Removes what killed imports left staged.

        While an import runs nothing is removed: all that is staged may be its own. Blocks as
        `replay`.
        """

    async def purge(self, account: int, before: int) -> int:
        """Removes payments, their updates and labels, and events with event times before `before`; how many."""

    async def rewrite(
        self,
        account: int,
        change: Callable[[Entry], Entry],
        kinds: Collection[Kind] = RECORDS,
    ) -> int:
        """Replaces bodies and outcomes of the account's entries of these kinds; how many.

        `change` is called in another thread, must return an entry of the same sequence number, and
        must leave alone what it has changed before: a run that was cut off is run again.
        """

    async def forget_values(self, account: int, values: Collection[str]) -> int:
        """Removes values from all that the account's lists hold and ever held; how many entries."""

    async def forget_account(self, account: int) -> int:
        """Removes all of an account but its first and its last change; how many entries.

        What is left whenever this is cut off can be opened, and is removed by another call.
        """

    async def forget_keys(self, sequences: Sequence[int]) -> int:
        """Removes the idempotency keys, with their answers, of the entries at these sequence
        numbers.
        """

    async def expire(self, now: int) -> None:
        """Removes idempotency keys, commands' requests and amendments older than 24 hours."""

    async def requests(self) -> list[CommandRequest]:
        """What commands have left for the service to do, oldest first."""

    async def take_request(self, request: int) -> None:
        """Takes a request that is about to be done: what it asks for is kept no longer."""

    async def note_progress(self, request: int, share: float) -> None:
        """Tells a request's command how much of it is done, from 0 to 1."""

    async def note_answer(self, request: int, result: str) -> None:
        """Answers a request's command with JSON text."""

    async def first_and_last(self, account: int, record_id: str) -> tuple[Entry, Entry] | None:
        """A payment's creation and its latest state, also when being written; None without it."""

    async def flush(self) -> None:
        """Done once all that was queued before the call is on disk or refused."""

    async def size(self) -> int:
        """How many bytes of a disk it takes."""

    async def lost(self) -> None:
        """Done once the journal is another process's: nothing can be written here any more."""

    async def prove(self, since: float) -> None:
        """Done once it is certain that the journal was this process's at a moment past `since` (by
        `time.monotonic`): what memory said by then was so. Raises `Fenced`, `Unavailable`."""

    def identity(self) -> str:
        """Tells this journal from every other; a restored one is another than the one backed up."""

    async def seal(self, at_least: int = BLOCK) -> None:
        """Seals (`checksums.py`) what is not yet, block by block, while `at_least` entries are left."""

    async def close(self) -> None:
        """Writes all that was accepted, then closes."""
