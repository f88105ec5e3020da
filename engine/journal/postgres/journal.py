"""The journal in PostgreSQL: one thread writes, a few others do point reads.

The event loop never waits for the network.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from itertools import islice
from queue import Empty, Full, LifoQueue
from typing import TypeVar

from tollkeeper.engine.journal import list_contents, reads, staging
from tollkeeper.engine.journal.appends import InFlight, UnusedIds
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import (
    Fenced,
    JournalError,
    Locked,
    Unavailable,
)
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, ListChange, ListEntry
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.postgres.connection import (
    OpenConnections,
    PostgresConnection,
    connect,
)
from tollkeeper.engine.journal.postgres.ownership import (
    LEASE_S,
    JournalStanding,
    Ownership,
    hand_to,
    not_owned,
    release,
    require_moved,
    standing_of,
    take,
    try_to_take,
)
from tollkeeper.engine.journal.postgres.schema import (
    has_current_tables,
    known_tables,
    prepare_tables,
    require_current_tables,
    warn_of_settings,
)
from tollkeeper.engine.journal.postgres.shards import layout_of
from tollkeeper.engine.journal.postgres.store import LOST, PostgresStore
from tollkeeper.engine.journal.requests import DATABASE_LOOK_S
from tollkeeper.engine.journal.threads import in_thread
from tollkeeper.engine.journal.writer import WAITING_LIMIT, Writer

_POINT_READS = 4
"""The threads for point reads, and the most idle connections that are kept open for them."""
_LIST_BATCH = 500
_RENEW_S = LEASE_S / 4
_RETRY_S = 0.25

T = TypeVar("T")


@asynccontextmanager
async def open_database(
    url: str, purpose: str, *, patience_s: float = 0.0, waiting_limit: int = WAITING_LIMIT
) -> AsyncIterator[PostgresJournal]:
    """Take over the database's journal for `purpose` and open it, until the end of the block.

    Raises `Locked` when another process has owned it for `patience_s` seconds, JournalError for a
    database that can't be used.
    """
    ownership = await _take_patiently(url, purpose, patience_s)
    journal = await asyncio.to_thread(PostgresJournal, url, ownership, waiting_limit)
    journal.begin_renewal()
    try:
        yield journal
    finally:
        await journal.close()


async def _take_patiently(url: str, purpose: str, patience_s: float) -> Ownership:
    def attempt() -> Ownership:
        with closing(connect(url)) as connection:
            prepare_tables(connection, url)
            ownership = take(connection, url, purpose)
            known_tables(connection, url)
            return ownership

    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await asyncio.to_thread(attempt)
        except Locked:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_RETRY_S)


@asynccontextmanager
async def follow_database(
    url: str, *, waiting_limit: int = WAITING_LIMIT
) -> AsyncIterator[PostgresJournal]:
    """Open the database's journal to follow it; `take_over` may make this process its owner later.

    Raises `JournalError`.
    """

    def prepare() -> Ownership:
        with closing(connect(url)) as connection:
            if not has_current_tables(connection, url):
                prepare_tables(connection, url)
            require_moved(connection, url)
            warn_of_settings(connection, url)
            return not_owned(connection)

    ownership = await asyncio.to_thread(prepare)
    journal = await asyncio.to_thread(PostgresJournal, url, ownership, waiting_limit)
    try:
        yield journal
    finally:
        await journal.close()


def connect_reader(url: str) -> PostgresConnection:
    """A read-only connection. Raises `JournalError` for tables of another version."""
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
    """Open the journal for reads only: this process does not own it and can't append."""
    with closing(connect_reader(url)) as connection:
        return PostgresJournal(url, not_owned(connection))


class PostgresJournal(Journal):
    """A `Journal` in a database, for its owner (`open_database`), a follower (`follow_database`) or a
    reader (`read_database`)."""

    look_s = DATABASE_LOOK_S

    def __init__(self, url: str, ownership: Ownership, waiting_limit: int = WAITING_LIMIT) -> None:
        self._url = url
        self._connections = OpenConnections(url)
        self._breaking_off: asyncio.TimerHandle | None = None
        self._ownership = ownership
        self._in_flight = InFlight()
        self._unused_ids = UnusedIds()
        self._store = PostgresStore(self._connections, ownership)
        self._read_threads = ThreadPoolExecutor(_POINT_READS, "journal-reads")
        self._idle_connections: LifoQueue[PostgresConnection] = LifoQueue(_POINT_READS)
        self._confirmed_at = 0.0
        self._confirmation: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        with self._reader() as connection:
            self.shard = layout_of(connection)
            self._identity = reads.identity(connection)
            self._trusted_clock = reads.trusted_clock(connection)
        self._writer = Writer(self._store, self._in_flight, ownership.last_place, waiting_limit)

    def append(
        self,
        entry: Entry,
        idempotency: Idempotency | None = None,
        contents: tuple[ListChange, ...] = (),
    ) -> asyncio.Future[None]:
        done = self._writer.append(entry, idempotency, contents)
        self._unused_ids.add_used(entry.account, entry.id)
        return done

    def has_room(self) -> bool:
        return self._writer.has_room()

    def _require_own(self) -> None:
        if self._store.is_lost:
            raise Fenced(LOST)

    def write_failure(self) -> str | None:
        if self._store.is_lost:
            return LOST
        if self._ownership.epoch < 0:
            # Another process writes the journal.
            return None
        if self._store.trouble is not None:
            return self._store.trouble
        if time.monotonic() - self._store.proved_at > LEASE_S:
            return f"the database has not confirmed the ownership for {LEASE_S:g} s"
        return self._writer.failure

    def trusted_clock(self) -> int:
        return self._trusted_clock

    async def set_clock(self, trusted: int) -> None:
        await super().set_clock(trusted)
        self._trusted_clock = trusted

    async def exists(self, account: int, kind: Kind, record_id: str) -> bool:
        is_unused = self._unused_ids.is_unused(account, record_id)
        if is_unused is None:
            is_unused = await self._look_up_prefix(account, record_id)
        self._require_own()
        if is_unused:
            return False
        while True:
            # An unsettled entry may still be lost, so wait: the answer is about entries on disk.
            while futures := self._in_flight.futures(account, record_id, kind):
                await asyncio.wait(futures)
            with self._in_flight.watch(account, record_id) as watch:
                is_there = await self.query(
                    lambda connection: reads.exists(connection, account, kind, record_id)
                )
            # Another request with this id may have appended it meanwhile.
            is_appended = watch.is_touched or self._in_flight.futures(account, record_id, kind)
            if is_there or not is_appended:
                self._require_own()
                return is_there

    def record_states(self, account: int, record_id: str, up_to: int) -> list[Entry]:
        """A payment's creation and updates up to a sequence number, oldest first.

        Blocks as `replay`.
        """
        with self._reader() as connection:
            states = reads.states(connection, account, record_id)
        return [entry for entry in states if entry.sequence <= up_to]

    def list_entries(
        self, account: int, list_name: str, *, beyond: str | None = None
    ) -> Iterator[list[ListEntry]]:
        if self._ownership.epoch >= 0 or beyond is not None:
            yield from super().list_entries(account, list_name, beyond=beyond)
            return
        # The list as of the last entry that was followed: the owner may be ahead.
        with self._reader() as connection:
            last = self._ownership.last_place
            entries = list_contents.entries_at(connection, account, list_name, last)
            while batch := list(islice(entries, _LIST_BATCH)):
                yield batch

    def last_sequence(self) -> int:
        return self._store.last_place

    def discard_abandoned(self) -> None:
        before = time.time_ns() // 1000 - staging.LONGEST_IMPORT
        with closing(self._connections.connect()) as connection:
            staging.discard_old(connection, before)

    def identity(self) -> str:
        return self._identity

    @property
    def node(self) -> str:
        """This process's name among those that share the journal."""
        return self._ownership.owner

    async def standing(self) -> JournalStanding:
        """Who owns the journal, and its last sequence numbers."""
        return await self.query(standing_of)

    def set_followed(self, sequence: int) -> None:
        """Set the last sequence number that a follower has counted; the owner ignores it."""
        if self._ownership.epoch < 0:
            self._ownership.last_place = sequence

    async def take_over(self, purpose: str, address: str) -> bool:
        """Make this process the owner, which other nodes reach at `address`; False while another's
        lease lasts. Raises `Unavailable`, `JournalError` where a newer release has changed the
        tables: none does as long as somebody owns the journal."""

        def attempt() -> bool:
            with self._reader() as connection:
                if not try_to_take(connection, self._ownership, purpose, address):
                    return False
                known_tables(connection, self._url)
                return True

        self._store.proved_at = time.monotonic()
        if not await asyncio.to_thread(attempt):
            return False
        self._writer.last_appended = self._ownership.last_place
        self.begin_renewal()
        return True

    async def hand_over(self, node: str | None = None) -> None:
        """Write what was appended, then release the ownership, so that `node`, or any other, can
        take over at once; nothing can be appended afterwards."""
        self._end_renewal()
        with suppress(Unavailable):
            await self.flush()
            await asyncio.to_thread(self._release, node)
            self._ownership.epoch = -1
        self._store.is_lost = True

    def begin_renewal(self) -> None:
        """Renew the lease in the background, until it is lost or the journal is closed."""
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew_in_time())

    def _end_renewal(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()

    async def flush(self) -> None:
        # A follower has nothing to write.
        if self._ownership.epoch >= 0:
            await self.renew()

    async def renew(self) -> None:
        """Renew the lease, and write for followers what the standby has by now. Raises `Unavailable`."""
        # Every transaction of the owner does both.
        await super().flush()

    async def _renew_in_time(self) -> None:
        while not self._store.is_lost:
            await asyncio.sleep(_RENEW_S)
            if time.monotonic() - self._store.proved_at > _RENEW_S:
                with suppress(Unavailable):
                    await self.renew()

    async def size(self) -> int:
        return await self.query(
            lambda connection: int(
                connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
            )
        )

    @property
    def is_lost(self) -> bool:
        """Whether this process owned the journal and no longer does."""
        return self._store.is_lost

    async def wait_until_lost(self) -> None:
        while not self._store.is_lost:
            await asyncio.sleep(_RETRY_S)

    async def prove(self, since: float) -> None:
        while max(self._store.proved_at, self._confirmed_at) < since:
            # All callers that wait at a moment share one query.
            if self._confirmation is None:
                self._confirmation = asyncio.create_task(self._confirm_owner())
            await asyncio.shield(self._confirmation)

    def end_within(self, seconds: float) -> None:
        """After `seconds`, end every wait for the database with `Unavailable`: a commit may wait for a
        standby without end, and the next owner finds out whether it was made."""
        if self._breaking_off is None:
            loop = asyncio.get_running_loop()
            self._breaking_off = loop.call_later(seconds, self._break_off)

    def _break_off(self) -> None:
        # The writer asks for the outcome of a commit until it is told to end; requests wait for it.
        self._store.ending.set()
        self._connections.break_off()

    async def close(self) -> None:
        self._end_renewal()
        self._store.ending.set()
        await self._writer.close()
        await asyncio.to_thread(self._read_threads.shutdown)
        self._close_idle()
        if self._ownership.epoch >= 0 and not self._store.is_lost:
            with suppress(Unavailable):
                await asyncio.to_thread(self._release)
        if self._breaking_off is not None:
            self._breaking_off.cancel()

    async def _leave_nothing_behind(self) -> None:
        """Do nothing: PostgreSQL keeps overwritten rows until it vacuums, whatever is done here."""

    @contextmanager
    def _reader(self) -> Iterator[PostgresConnection]:
        connection = self._idle_connection() or self._connections.connect()
        try:
            yield connection
        finally:
            self._set_idle(connection)

    def _set_idle(self, connection: PostgresConnection) -> None:
        # Never waits for room: several threads may fill it at once.
        with suppress(Full):
            if connection.is_usable():
                self._idle_connections.put_nowait(connection)
                return
        if connection.raw.closed:
            # Whatever ended it has ended the others, and not each read tries a second time.
            self._close_idle()
        connection.close()

    def _close_idle(self) -> None:
        with suppress(Empty):
            while True:
                self._idle_connections.get_nowait().close()

    def _idle_connection(self) -> PostgresConnection | None:
        with suppress(Empty):
            while not (connection := self._idle_connections.get_nowait()).is_usable():
                connection.close()
            return connection
        return None

    async def query(self, read: Callable[[SqlConnection], T]) -> T:

        def work() -> T:
            try:
                with self._reader() as connection:
                    return read(connection)
            except Unavailable:
                # An idle connection may have been closed by the server: try once with a new one.
                with closing(self._connections.connect()) as connection:
                    return read(connection)

        return await in_thread(self._read_threads, work)

    async def _confirm_owner(self) -> None:
        begun = time.monotonic()
        try:
            if (await self.standing()).owner != self._ownership.owner:
                raise Fenced(LOST)
            self._confirmed_at = begun
        finally:
            self._confirmation = None

    def _release(self, node: str | None = None) -> None:
        with closing(self._connections.connect()) as connection:
            if node is None:
                release(connection, self._ownership)
            else:
                hand_to(connection, self._ownership, node)
