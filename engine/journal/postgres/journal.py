"""The journal in PostgreSQL: a thread that writes, and reads in threads of their own.

Nothing that waits for the network runs in the event loop. A read in another thread may miss what
was committed while it ran: then it is done again, so that what a caller gets holds at the moment it
goes on, together with what is being written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from itertools import islice
from queue import Empty, LifoQueue
from typing import TypeVar

from tollkeeper.engine.journal import list_contents, reads, requests, staging
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import (
    CommandRequest,
    Fenced,
    JournalError,
    Locked,
    Unavailable,
)
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange, ListEntry
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.postgres.connection import (
    PostgresConnection,
    connect,
)
from tollkeeper.engine.journal.postgres.ownership import (
    LEASE_S,
    JournalStanding,
    Ownership,
    give_back,
    give_to,
    nobody,
    require_moved,
    standing_of,
    take,
    try_to_take,
)
from tollkeeper.engine.journal.postgres.schema import (
    has_current_tables,
    prepare_tables,
    require_current_tables,
    warn_of_settings,
)
from tollkeeper.engine.journal.postgres.shards import layout_of
from tollkeeper.engine.journal.postgres.store import PostgresStore
from tollkeeper.engine.journal.threads import in_thread
from tollkeeper.engine.journal.writer import (
    BEGINNING,
    WAITING_LIMIT,
    Append,
    InFlight,
    UnusedIds,
    Writer,
)

_POINT_READS = 4
"""How many point reads run side by side, and how many connections wait for the next read at most.
"""
_LISTED = 500
_RENEW_S = LEASE_S / 4
_TRY_S = 0.25

T = TypeVar("T")


@asynccontextmanager
async def open_database(
    url: str, purpose: str, *, patience_s: float = 0.0, waiting_limit: int = WAITING_LIMIT
) -> AsyncIterator[PostgresJournal]:
    """Takes the database's journal over for `purpose` and opens it, until the end of the block.

    Raises `Locked` when another process owns it for longer than `patience_s`, JournalError for a
    database that can't be used.
    """
    ownership = await _take(url, purpose, patience_s)
    journal = await asyncio.to_thread(PostgresJournal, url, ownership, waiting_limit)
    journal.begin_renewing()
    try:
        yield journal
    finally:
        await journal.close()


async def _take(url: str, purpose: str, patience_s: float) -> Ownership:
    def attempt() -> Ownership:
        with closing(connect(url)) as connection:
            prepare_tables(connection, url)
            return take(connection, url, purpose)

    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await asyncio.to_thread(attempt)
        except Locked:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_TRY_S)


@asynccontextmanager
async def follow_database(
    url: str, *, waiting_limit: int = WAITING_LIMIT
) -> AsyncIterator[PostgresJournal]:
    """The database's journal, to be followed and, some time, taken over (`take_over`).

    What ages and snapshots on this machine hold is in what can be followed. Raises `JournalError`.
    """

    def look() -> Ownership:
        with closing(connect(url)) as connection:
            if not has_current_tables(connection, url):
                prepare_tables(connection, url)
            require_moved(connection, url)
            warn_of_settings(connection, url)
            return nobody(connection)

    ownership = await asyncio.to_thread(look)
    journal = await asyncio.to_thread(PostgresJournal, url, ownership, waiting_limit)
    try:
        yield journal
    finally:
        await journal.close()


def connect_reader(url: str) -> PostgresConnection:
    """A connection that changes nothing. Raises `JournalError` for tables of another version."""
    connection = connect(url)
    try:
        require_current_tables(connection, url)
        require_moved(connection, url)
        connection.execute("SET default_transaction_read_only = on")
    except JournalError:
        connection.close()
        raise
    return connection


def read_database(url: str) -> PostgresJournal:
    """The journal for reads alone: nothing can be appended, as it is somebody else's."""
    with closing(connect_reader(url)) as connection:
        return PostgresJournal(url, nobody(connection))


class PostgresJournal(Journal):
    """A `Journal` in a database that is owned, as `open_database` owns it."""

    def __init__(self, url: str, ownership: Ownership, waiting_limit: int = WAITING_LIMIT) -> None:
        self._url = url
        self._ownership = ownership
        self._in_flight = InFlight()
        self._unused_ids = UnusedIds()
        self._store = PostgresStore(url, ownership)
        self._points = ThreadPoolExecutor(_POINT_READS, "journal-reads")
        self._idle: LifoQueue[PostgresConnection] = LifoQueue(_POINT_READS)
        self._seen_at = 0.0
        self._look: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        with self._reader() as connection:
            self.shard = layout_of(connection)
            self._identity = reads.identity(connection)
            self._trusted_clock = reads.trusted_clock(connection)
        self._last_appended = ownership.last_place
        self._writer = Writer(self._store, self._in_flight.remove, waiting_limit)

    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        if entry.sequence <= self._last_appended:
            raise ValueError(
                f"sequence number {entry.sequence} is not beyond {self._last_appended}"
            )
        append: Append = self._writer.append(entry, idempotency, contents)
        self._last_appended = entry.sequence
        self._in_flight.add(append)
        self._unused_ids.remove(entry.account, entry.id)
        return append.done

    def has_room(self) -> bool:
        return self._writer.has_room()

    def write_failure(self) -> str | None:
        if self._store.is_lost:
            return "another process has taken the journal over"
        if self._ownership.epoch < 0:
            # What is followed is written by another.
            return None
        if self._store.trouble is not None:
            return self._store.trouble
        if time.monotonic() - self._store.proved_at > LEASE_S:
            return "the database has not confirmed for long whose journal it is"
        return self._writer.failure

    def trusted_clock(self) -> int:
        return self._trusted_clock

    async def set_clock(self, trusted: int) -> None:
        await super().set_clock(trusted)
        self._trusted_clock = trusted

    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        is_unused = self._unused_ids.knows(account, record_id)
        if is_unused is None:
            is_unused = await self._ask_for_ids(account, record_id)
        if is_unused:
            return False
        # What is being written may still be lost: only what is on disk is told of.
        while settling := self._in_flight.settling(account, record_id, kind):
            await asyncio.wait(settling)
        return await self._point(
            lambda connection: reads.exists(connection, account, kind, record_id)
        )

    async def states(self, account: int, record_id: str) -> list[Entry]:
        return await self._with_written(
            account,
            record_id,
            (Kind.PAYMENT, Kind.UPDATE),
            lambda connection: reads.states(connection, account, record_id),
        )

    async def of_record(self, account: int, kind: Kind, record_id: str) -> list[Entry]:
        return await self._with_written(
            account,
            record_id,
            (kind,),
            lambda connection: reads.of_record(connection, account, kind, record_id),
        )

    async def first_and_last(self, account: int, record_id: str) -> tuple[Entry, Entry] | None:
        found = await self._with_written(
            account,
            record_id,
            (Kind.PAYMENT, Kind.UPDATE),
            lambda connection: reads.first_and_last(connection, account, record_id),
        )
        return (found[0], found[-1]) if found else None

    async def count_updates(self, account: int, record_id: str, most: int) -> int:
        return await self._point(
            lambda connection: reads.count_updates(connection, account, record_id, most)
        )

    def record_states(self, account: int, record_id: str, up_to: int) -> list[Entry]:
        """A payment's creation and updates up to a sequence number, oldest first; blocks as
        `replay`."""
        with self._reader() as connection:
            found = reads.states(connection, account, record_id)
        return [entry for entry in found if entry.sequence <= up_to]

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        if self._ownership.epoch >= 0 or beyond is not None:
            yield from super().list_entries(account, list_name, beyond=beyond)
            return
        # As of what has been followed: the owner may be ahead.
        with self._reader() as connection:
            last = self._ownership.last_place
            entries = list_contents.entries_at(connection, account, list_name, last)
            while batch := list(islice(entries, _LISTED)):
                yield batch

    async def entry(self, sequence: int) -> Entry | None:
        return await self._point(lambda connection: reads.entry_at(connection, sequence))

    async def find_idempotency(self, account: int, key: str, now: int) -> Idempotency | None:
        while True:
            while first_use := self._in_flight.with_key(account, key):
                await first_use
            with self._in_flight.watch(account, key) as watched:
                found = await self._point(
                    lambda connection: reads.find_idempotency(connection, account, key, now)
                )
            if not watched.is_touched and self._in_flight.with_key(account, key) is None:
                return found

    async def changes(self, after: int = 0) -> list[Entry]:
        return await self._in_thread(lambda connection: reads.changes(connection, after))

    def last_sequence(self) -> int:
        return self._store.last_place

    def discard_abandoned(self) -> None:
        before = time.time_ns() // 1000 - staging.LONGEST_IMPORT
        with closing(connect(self._url)) as connection:
            staging.discard_old(connection, before)

    async def requests(self) -> list[CommandRequest]:
        return await self._point(requests.open_requests)

    def identity(self) -> str:
        return self._identity

    @property
    def node(self) -> str:
        """What this process is called among those that share the journal."""
        return self._ownership.owner

    async def standing(self) -> JournalStanding:
        """Whose journal it is, and how far it goes."""
        return await self._point(standing_of)

    def followed(self, sequence: int) -> None:
        """All up to a sequence number is known here, as long as the journal is another's."""
        if self._ownership.epoch < 0:
            self._ownership.last_place = sequence

    async def take_over(self, purpose: str, address: str) -> bool:
        """Makes the journal this process's, reached by others at `address`; False while another's
        lease lasts. Raises `Unavailable`."""

        def attempt() -> bool:
            with self._reader() as connection:
                return try_to_take(connection, self._ownership, purpose, address)

        self._store.proved_at = time.monotonic()
        if not await asyncio.to_thread(attempt):
            return False
        self._last_appended = self._ownership.last_place
        self.begin_renewing()
        return True

    async def hand_over(self, node: str | None = None) -> None:
        """Lets another, `node` where one is named, take over at once what was written here; nothing
        can be any more."""
        self._end_renewing()
        with suppress(Unavailable):
            await self.flush()
            await asyncio.to_thread(self._give_back, node)
            self._ownership.epoch = -1
        self._store.is_lost = True

    def begin_renewing(self) -> None:
        """Proves the ownership now and then, until it is another's or the journal is closed."""
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    def _end_renewing(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    async def flush(self) -> None:
        # What is followed is in the database already.
        if self._ownership.epoch >= 0:
            await super().flush()

    async def _renew(self) -> None:
        while not self._store.is_lost:
            await asyncio.sleep(_RENEW_S)
            if time.monotonic() - self._store.proved_at > _RENEW_S:
                with suppress(Unavailable):
                    await self.flush()

    async def size(self) -> int:
        return await self._point(
            lambda connection: int(
                connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
            )
        )

    @property
    def is_lost(self) -> bool:
        """Whether the journal was this process's, and is another's by now."""
        return self._store.is_lost

    async def lost(self) -> None:
        while not self._store.is_lost:
            await asyncio.sleep(_TRY_S)

    async def look(self, query: Callable[[SqlConnection], T]) -> T:
        """A short query of another kind."""
        return await self._point(query)

    async def prove(self, since: float) -> None:
        while max(self._store.proved_at, self._seen_at) < since:
            # All who wait at a moment look together.
            if self._look is None:
                self._look = asyncio.create_task(self._look_whose())
            await asyncio.shield(self._look)

    async def close(self) -> None:
        self._end_renewing()
        self._store.ending.set()
        await self._writer.close()
        await asyncio.to_thread(self._points.shutdown)
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()
        if self._ownership.epoch >= 0 and not self._store.is_lost:
            with suppress(Unavailable):
                await asyncio.to_thread(self._give_back)

    async def _leave_nothing_behind(self) -> None:
        """What is overwritten stays in the database's files until it is vacuumed."""

    @contextmanager
    def _reader(self) -> Iterator[PostgresConnection]:
        connection = self._waiting_connection() or connect(self._url)
        try:
            yield connection
        finally:
            if connection.is_usable() and not self._idle.full():
                self._idle.put(connection)
            else:
                connection.close()

    def _waiting_connection(self) -> PostgresConnection | None:
        with suppress(Empty):
            while not (connection := self._idle.get_nowait()).is_usable():
                connection.close()
            return connection
        return None

    async def _with_written(
        self,
        account: int,
        record_id: str,
        kinds: tuple[Kind, ...],
        read: Callable[[SqlConnection], list[Entry]],
    ) -> list[Entry]:
        """What is on disk of a record and what is being written, as of the moment of return."""
        while True:
            with self._in_flight.watch(account, record_id) as watched:
                written = await self._point(read)
            if not watched.is_touched:
                last = written[-1].sequence if written else 0
                being_written = self._in_flight.of(account, record_id, *kinds)
                return written + [entry for entry in being_written if entry.sequence > last]

    async def _ask_for_ids(self, account: int, record_id: str) -> bool:
        ids, beginning = self._unused_ids, record_id[:BEGINNING]
        ids.ask(account, beginning)
        is_found = self._in_flight.begins(account, beginning) or await self._point(
            lambda connection: (
                connection.execute(
                    reads.ID_BEGINS, (account, beginning, beginning + reads.LAST_CHARACTER)
                ).fetchone()
                is not None
            )
        )
        ids.learn(account, beginning, are_unused=not is_found)
        return bool(ids.knows(account, record_id))

    async def _point(self, read: Callable[[SqlConnection], T]) -> T:
        def work() -> T:
            try:
                with self._reader() as connection:
                    return read(connection)
            except Unavailable:
                # A connection that was idle may have ended meanwhile.
                with closing(connect(self._url)) as connection:
                    return read(connection)

        return await in_thread(self._points, work)

    async def _look_whose(self) -> None:
        begun = time.monotonic()
        try:
            if (await self.standing()).owner != self._ownership.owner:
                raise Fenced("another process has taken the journal over")
            self._seen_at = begun
        finally:
            self._look = None

    def _give_back(self, node: str | None = None) -> None:
        with closing(connect(self._url)) as connection:
            if node is None:
                give_back(connection, self._ownership)
            else:
                give_to(connection, self._ownership, node)
