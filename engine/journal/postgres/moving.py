"""A database that a journal is being moved into: the command owns it, and no node serves it."""

# ruff: noqa: S608 - only names of our own tables are put into the queries

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from psycopg import sql

from tollkeeper.engine.journal.contract import Fenced, JournalError
from tollkeeper.engine.journal.lock import COMMAND_PURPOSE
from tollkeeper.engine.journal.postgres.connection import (
    PostgresConnection,
    connect,
    shown_address,
)
from tollkeeper.engine.journal.postgres.ownership import Ownership, release, take
from tollkeeper.engine.journal.postgres.schema import prepare_tables
from tollkeeper.engine.journal.postgres.shards import layout_of
from tollkeeper.engine.journal.postgres.store import LOST, RENEW, insert_rows


class MovingTarget:
    """Each call is one transaction, which proves the ownership. Raises `Fenced`, `JournalError`."""

    def __init__(self, connection: PostgresConnection, ownership: Ownership) -> None:
        self._connection = connection
        self._ownership = ownership

    def last_moved(self) -> int:
        """The last sequence number that an earlier run has moved, 0 when there was none."""
        ((last,),) = self._connection.execute(
            "SELECT coalesce(max(place), 0) FROM journal"
        ).fetchall()
        return int(last)

    def add_entries(self, rows: Sequence[Sequence[Any]]) -> None:
        """Append entries with their checksums, in order of sequence numbers."""
        with self._step():
            insert_rows(self._connection, rows)

    def replace(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Replace all of a table's rows."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._step():
            self._connection.execute(f"DELETE FROM {table}")
            with self._connection.raw.cursor().copy(statement) as copy:
                for row in rows:
                    copy.write_row(row)

    def finish(self, last: int, clock: int, amendments: int) -> None:
        """Set what nodes need to serve the journal, once everything is moved.

        `last` is the last sequence number, `clock` (µs) when the clock was last trusted,
        `amendments` the number of the last amendment.
        """
        with self._step():
            self._connection.execute("UPDATE shards SET last_place = ?", (last,))
            self._connection.execute("UPDATE numbers SET seq = ?", (amendments,))
            self._connection.execute("UPDATE identity SET clock = ?, moving = ''", (clock,))
            self._connection.execute(
                "SELECT setval(pg_get_serial_sequence('list_contents', 'id'),"
                " (SELECT coalesce(max(id), 0) + 1 FROM list_contents), FALSE)"
            )

    @contextmanager
    def _step(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        with self._connection:
            if self._connection.execute(RENEW, (0, self._ownership.epoch, 0)).fetchone() is None:
                raise Fenced(LOST)
            yield


@contextmanager
def open_target(url: str, identity: str) -> Iterator[MovingTarget]:
    """Open a database, empty or with a part of the journal `identity`, to move that journal into it.

    Raises `JournalError`.
    """
    with closing(connect(url)) as connection:
        prepare_tables(connection, url)
        ownership = take(connection, url, COMMAND_PURPOSE, moving=identity)
        try:
            if layout_of(connection).of > 1:
                raise JournalError(
                    f"`{shown_address(url)}` has several shards: a folder is moved into one journal"
                )
            ((moving,),) = connection.execute("SELECT moving FROM identity").fetchall()
            if moving != identity and (moving or ownership.last_place):
                raise JournalError(
                    f"`{shown_address(url)}` holds a journal already: a folder is"
                    " moved once, into a database without one"
                )
            connection.execute("UPDATE identity SET moving = ?", (identity,))
            yield MovingTarget(connection, ownership)
        finally:
            if not connection.raw.closed:
                release(connection, ownership)
