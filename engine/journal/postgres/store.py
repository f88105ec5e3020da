"""Writes the journal in PostgreSQL; each transaction checks that this process still owns it."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.errors import CardinalityViolation, UniqueViolation

from tollkeeper.engine.journal import list_contents, reads
from tollkeeper.engine.journal.appends import Append
from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.connection import FoundRows, SqlConnection
from tollkeeper.engine.journal.contract import Fenced, JournalError, Taken, Unavailable
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.postgres.arrays import (
    BYTEA,
    INT2,
    INT8,
    ElementType,
    EncodedArray,
    encode_columns,
    with_length,
)
from tollkeeper.engine.journal.postgres.connection import (
    OpenConnections,
    PostgresConnection,
    escape_text,
)
from tollkeeper.engine.journal.postgres.ownership import LEASE_S, Ownership, begin_epoch

_LEASE = f"clock_timestamp() + interval '{LEASE_S} seconds'"
_FENCE = (
    f"UPDATE shards SET last_place = %s, safe_place = last_place, lease_until = {_LEASE}"
    " WHERE shard = 1 AND epoch = %s AND last_place = %s RETURNING 1"
)
_TEXT = ElementType(25, lambda text: with_length(escape_text(text).encode()))
_ENTRY_TYPES = (INT8, INT8, INT2, _TEXT, INT8, INT8, BYTEA, BYTEA, INT8)
_KEY_TYPES = (INT8, INT8, _TEXT, BYTEA, BYTEA, INT8)
_INSERTS = (
    f"kept AS (INSERT INTO journal ({reads.ALL_COLUMNS}) SELECT * FROM unnest("
    "%b::bigint[], %b::bigint[], %b::smallint[], %b::text[], %b::bigint[], %b::bigint[],"
    " %b::bytea[], %b::bytea[], %b::bigint[]){} RETURNING account, id, kind, place),"
    " named AS (INSERT INTO ids (account, id, kind, place) SELECT * FROM kept),"
    " keyed AS (INSERT INTO idempotency (place, account, key, digest, response, arrived)"
    " SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::text[], %b::bytea[], %b::bytea[],"
    " %b::bigint[]){} ON CONFLICT (account, key) DO UPDATE SET place = excluded.place,"
    " digest = excluded.digest, response = excluded.response, arrived = excluded.arrived)"
)
_FENCED = " WHERE EXISTS (SELECT 1 FROM fence)"
_APPEND = f"WITH fence AS ({_FENCE}), {_INSERTS.format(_FENCED, _FENCED)} SELECT 1 FROM fence"
_INSERT = f"WITH {_INSERTS.format('', '')} SELECT 1"
RENEW = (
    f"UPDATE shards SET lease_until = {_LEASE}, safe_place = greatest(safe_place, ?)"
    " WHERE shard = 1 AND epoch = ? AND last_place >= ? RETURNING 1"
)
# Without what an erasure rewrites.
_WRITTEN = (
    "SELECT 1 FROM journal"
    " WHERE place = ? AND account = ? AND kind = ? AND id = ? AND arrived = ? AND time = ?"
)
LOST = "another process has taken the journal over"
_RETRY_S = 0.2
_TRIAL_BYTES = 1 << 16
"""The size of the entry that is written to try whether the database has room."""

# Errors that an entry causes, and not the state of the database.
_REFUSING = (psycopg.IntegrityError, psycopg.DataError, CardinalityViolation)

T = TypeVar("T")


class _RolledBack(Exception):  # noqa: N818 - named for what happened
    """An entry can't be stored, and its transaction was rolled back."""


class PostgresStore:
    """An `EntryStore` for the journal's owner.

    When the answer to a commit is lost, the store finds out whether it was written before it does
    anything else: it begins another epoch, so that the old transaction can't be committed any more,
    and compares the last sequence number.

    `proved_at` is when (by `time.monotonic`) the ownership was last proved; `is_lost` is true once
    another process owns the journal; `trouble` says why nothing can be written, None when it can.
    Once `ending` is set, an outcome that can't be found out soon is reported as `Unavailable`.
    """

    def __init__(self, connections: OpenConnections, ownership: Ownership) -> None:
        self._connections = connections
        self._ownership = ownership
        self._connection: PostgresConnection | None = None
        # Whether the last batch failed: a step may succeed in a full database, see `_takes_entries`.
        self._has_failed = False
        self.proved_at = time.monotonic()
        self.is_lost = False
        self.trouble: str | None = None
        self.ending = threading.Event()

    @property
    def last_place(self) -> int:
        """The last sequence number that was written."""
        return self._ownership.last_place

    def write(self, batch: Sequence[Append]) -> dict[int, Exception]:
        self._has_failed = True
        try:
            refused = self._transact(batch, self._write_whole)
        except _RolledBack:
            try:
                refused = self._transact(batch, self._write_one_by_one)
            except _RolledBack as error:
                raise Unavailable(_one_line(error.__cause__)) from error.__cause__
        self._has_failed = False
        return refused

    def perform(self, work: Callable[[SqlConnection], T]) -> tuple[T, bool]:
        result = self._perform(work)
        return result, self._takes_entries()

    def disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _perform(self, work: Callable[[SqlConnection], T]) -> T:
        connection = self._require_connection()
        try:
            connection.execute("BEGIN")
            self._renew(connection)
            result = work(connection)
            connection.was_warned = False
            begun = time.monotonic()
            connection.execute("COMMIT")
        except psycopg.Error as error:
            raise Unavailable(f"the journal can't be written: {_one_line(error)}") from error
        if connection.was_warned:
            raise Unavailable("the journal can't be written: no standby has it")
        self.proved_at, self.trouble = begun, None
        return result

    def _takes_entries(self) -> bool:
        """Whether an entry could be written; after a failed batch, by writing one and rolling it
        back."""
        if self._has_failed:
            connection, place = self._require_connection(), self._ownership.last_place + 1
            try:
                with connection.raw.transaction(force_rollback=True):
                    connection.raw.execute(_INSERT, _trial_values(place))
            except psycopg.Error:
                return False
            self._has_failed = False
        return True

    def _transact(
        self,
        batch: Sequence[Append],
        work: Callable[[PostgresConnection, Sequence[Append], dict[int, Exception]], None],
    ) -> dict[int, Exception]:
        """Run `work`, which ends with a commit; returns the errors of entries that were left out.

        Raises `_RolledBack` when an entry can't be stored, `Unavailable` when nothing was written.
        """
        connection = self._require_connection()
        refused: dict[int, Exception] = {}
        begun = time.monotonic()
        connection.was_warned, lost_answer = False, None
        try:
            work(connection, batch, refused)
        except psycopg.Error as error:
            if not connection.raw.closed:
                if not isinstance(error, _REFUSING):
                    raise
                connection.raw.rollback()
                raise _RolledBack from error
            lost_answer = _one_line(error)
        except (ValueError, OverflowError) as error:
            connection.raw.rollback()
            raise _RolledBack from error
        if connection.was_warned:
            lost_answer = "no standby has it"
        if lost_answer is not None:
            self._find_outcome(batch, refused, lost_answer)
        self._ownership.last_place = batch[-1].entry.sequence
        self.proved_at, self.trouble = begun, None
        return refused

    def _write_whole(
        self, connection: PostgresConnection, batch: Sequence[Append], _refused: object
    ) -> None:
        values = (*self._fence(batch), *_arrays(batch))
        if not any(append.contents for append in batch):
            self._require_own(connection.raw.execute(_APPEND, values))
            return
        connection.raw.execute("BEGIN")
        self._require_own(connection.raw.execute(_APPEND, values))
        for append in batch:
            _change_lists(connection, append)
        connection.raw.execute("COMMIT")

    def _write_one_by_one(
        self,
        connection: PostgresConnection,
        batch: Sequence[Append],
        refused: dict[int, Exception],
    ) -> None:
        connection.raw.execute("BEGIN")
        self._require_own(connection.raw.execute(_FENCE, self._fence(batch)))
        for append in batch:
            connection.raw.execute("SAVEPOINT entry")
            try:
                connection.raw.execute(_INSERT, _arrays([append]))
                _change_lists(connection, append)
            except (*_REFUSING, ValueError, OverflowError) as error:
                connection.raw.execute("ROLLBACK TO entry")
                refused[append.entry.sequence] = _refusal(append.entry, error)
            connection.raw.execute("RELEASE entry")
        connection.raw.execute("COMMIT")

    def _fence(self, batch: Sequence[Append]) -> tuple[int, int, int]:
        return batch[-1].entry.sequence, self._ownership.epoch, self._ownership.last_place

    def _renew(self, connection: PostgresConnection) -> None:
        last, epoch = self._ownership.last_place, self._ownership.epoch
        self._require_own(connection.execute(RENEW, (last, epoch, last)))

    def _require_own(self, changed: FoundRows) -> None:
        if changed.fetchone() is None:
            self.is_lost = True
            raise Fenced(LOST)

    def _find_outcome(self, batch: Sequence[Append], refused: Collection[int], reason: str) -> None:
        """Return once it is known that the batch was written, but for the entries `refused`; raises
        `Unavailable` when it was not."""
        while True:
            self.disconnect()
            self.trouble = f"what became of the last entries is not known yet: {reason}"
            is_ending = self.ending.wait(_RETRY_S)
            try:
                was_written = self._was_written(self._require_connection(), batch, refused)
            except Fenced:
                raise
            except (psycopg.Error, Unavailable) as error:
                if is_ending:
                    raise Unavailable(f"{self.trouble}; {error}") from error
                reason = _one_line(error)
            else:
                self.trouble = None
                if was_written:
                    return
                raise Unavailable(reason)

    def _was_written(
        self, connection: PostgresConnection, batch: Sequence[Append], refused: Collection[int]
    ) -> bool:
        """Whether the batch was written. Raises `Fenced` when the database lacks entries that were
        written before."""
        before, last = self._ownership.last_place, batch[-1].entry.sequence
        connection.was_warned = False
        if begin_epoch(connection, self._ownership):
            if connection.was_warned:
                raise Unavailable("no standby has it")
            if self._ownership.last_place in (before, last):
                return self._ownership.last_place == last
            self.is_lost = True
            raise Fenced(
                f"the database ends with entry {self._ownership.last_place}, but {before} was"
                " written before: it has come back older than it was"
            )
        # Another process owns the journal now. Its taking over waited for our transaction to end. Once
        # this commit is confirmed, every standby has what is read next.
        connection.execute("UPDATE barrier SET number = number + 1")
        if connection.was_warned:
            raise Unavailable("no standby has it")
        sent = [each.entry for each in batch if each.entry.sequence not in refused]
        was_written = bool(sent) and _has_entry(connection, sent[0])
        self.is_lost = True
        return was_written

    def _require_connection(self) -> PostgresConnection:
        if self.is_lost:
            raise Fenced(LOST)
        if self._connection is None:
            self._connection = self._connections.connect()
        return self._connection


def _arrays(batch: Sequence[Append]) -> list[EncodedArray]:
    rows = [(*append.entry, checksum(append.entry)) for append in batch]
    used = [(each.entry, each.idempotency) for each in batch]
    keys = [
        (entry.sequence, entry.account, key.key, key.digest, key.response, entry.arrived)
        for entry, key in used
        if key is not None
    ]
    return _encode(rows, keys)


def _trial_values(place: int) -> list[EncodedArray]:
    """The values of `_INSERT` for an entry and a key of no account."""
    body = os.urandom(_TRIAL_BYTES)
    entry = (place, 0, Kind.PAYMENT, "", 0, 0, body, body, 0)
    return _encode([entry], [(place, 0, "", b"", body, 0)])


def insert_rows(connection: PostgresConnection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert entries with their checksums, in a transaction that has proved the ownership."""
    connection.raw.execute(_INSERT, _encode(rows, ()))


def _encode(rows: Sequence[Sequence[Any]], keys: Sequence[Sequence[Any]]) -> list[EncodedArray]:
    return [*encode_columns(rows, _ENTRY_TYPES), *encode_columns(keys, _KEY_TYPES)]


def _change_lists(connection: PostgresConnection, append: Append) -> None:
    account, sequence = append.entry.account, append.entry.sequence
    try:
        for change in append.contents:
            list_contents.change_list(connection, account, sequence, change)
    except Unavailable as error:
        # The database's own error says whether the entry or the database is at fault.
        raise error.__cause__ or error from None


def _has_entry(connection: PostgresConnection, entry: Entry) -> bool:
    """Whether the journal has this entry: another owner may have used its sequence number."""
    sequence, account, kind, id_, arrived, time_, *_ = entry
    values = (sequence, account, kind, id_, arrived, time_)
    return connection.execute(_WRITTEN, values).fetchone() is not None


def _refusal(entry: Entry, error: Exception) -> Exception:
    if isinstance(error, UniqueViolation):
        return Taken(f"the id `{entry.id}` is already used")
    return JournalError(f"entry {entry.sequence} can't be stored: {_one_line(error)}")


def _one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
