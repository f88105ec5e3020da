"""A connection to PostgreSQL that takes the journal's queries, which are written for SQLite too.

Two things that SQLite has built in and queries name are tables here: `ids` for the index `by_id`,
and `numbers` for `sqlite_sequence`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from os import dup
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tollkeeper.engine.journal.connection import FoundRows
from tollkeeper.engine.journal.contract import JournalError, Unavailable

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.errors import Diagnostic
    from psycopg.pq import TransactionStatus
    from psycopg.types.string import (
        StrBinaryDumper,
        StrDumper,
        TextBinaryLoader,
        TextLoader,
    )

    from tollkeeper.engine.journal.postgres.arrays import EncodedArray, EncodedArrayDumper
except ImportError as error:  # pragma: no cover - an extra
    raise JournalError("`--database` needs an extra: pip install 'tollkeeper[postgres]'") from error

if TYPE_CHECKING:
    from psycopg.abc import Buffer

_BY_ID = re.compile(r"\bjournal( AS \w+)? INDEXED BY by_id\b")
_HINT = re.compile(r" (?:NOT INDEXED|INDEXED BY \w+)\b")
_TEXT_IN = re.compile(r"\binstr\(lower\((\w+)\), \?\)")
# Compares bytes, as SQLite does: a body need not be valid UTF-8.
_BYTES_IN = (
    r"strpos(lower(convert_from(\1, 'LATIN1') COLLATE "
    '"C"),'
    " convert_from(convert_to(?, 'UTF8'), 'LATIN1'))"
)
# A connection to a server that is gone fails within about this many seconds.
_PATIENCE_S = 10
# The SQLSTATE of the warning that a commit was not confirmed by a standby; the commit succeeds.
_NOT_REPLICATED = "01000"
_SESSION = (
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
    " -c default_transaction_isolation=read\\ committed"
    # A bitmap scan would sort all remaining entries of an account for each batch that is read.
    " -c enable_bitmapscan=off"
    # Each query has its index; a table without statistics yet would be read as a whole.
    " -c enable_seqscan=off -c jit=off"
)
_DEFAULTS: dict[str, Any] = {
    "application_name": "tollkeeper",
    "connect_timeout": _PATIENCE_S // 2,
    "keepalives_idle": _PATIENCE_S // 2,
    "keepalives_interval": 1,
    "keepalives_count": _PATIENCE_S // 2,
    "tcp_user_timeout": _PATIENCE_S * 1000,
    "client_encoding": "utf8",
    "options": _SESSION,
}


@lru_cache(maxsize=2048)
def translated(query: str) -> str:
    """A query of the journal in PostgreSQL's SQL, with psycopg's placeholders."""
    query = _HINT.sub("", _BY_ID.sub(r"ids\1", query))
    query = _TEXT_IN.sub(_BYTES_IN, query)
    query = query.replace("sqlite_sequence", "numbers").replace("BEGIN IMMEDIATE", "BEGIN")
    return query.replace("%", "%%").replace("?", "%s")


class PostgresConnection:
    """A single statement is a transaction. Raises `Unavailable` when the database can't be used.

    `was_warned` is set by a commit that no standby confirmed; callers reset it before a commit.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.was_warned = False
        raw.add_notice_handler(self._handle_notice)

    def execute(self, query: str, parameters: Any = (), /) -> FoundRows:
        with _named_errors():
            return self.raw.execute(translated(query), parameters, binary=True)

    def executemany(self, query: str, parameters: Iterable[Any], /) -> FoundRows:
        cursor = self.raw.cursor()
        with _named_errors():
            cursor.executemany(translated(query), list(parameters))
        return cursor

    def is_usable(self) -> bool:
        """Whether it is open and in no transaction."""
        return not self.raw.closed and self.raw.info.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        self.raw.close()

    def break_off(self) -> None:
        """End the connection; a caller that waits for an answer in another thread gets `Unavailable`."""
        with suppress(psycopg.Error, OSError), socket.socket(fileno=dup(self.raw.fileno())) as same:
            same.shutdown(socket.SHUT_RDWR)

    def _handle_notice(self, notice: Diagnostic) -> None:
        if notice.sqlstate == _NOT_REPLICATED:
            self.was_warned = True

    def __enter__(self) -> PostgresConnection:
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        if not self.raw.closed:
            self.execute("COMMIT" if error is None else "ROLLBACK")


def connect(url: str) -> PostgresConnection:
    """Open a connection. Raises `Unavailable` when the database can't be reached, `JournalError` for
    an invalid address."""
    try:
        chosen = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError as error:
        raise JournalError(f"`{shown_address(url)}` is no address of a database") from error
    options = f"{_SESSION} {chosen.get('options', '')}".rstrip()
    try:
        raw = psycopg.connect(
            make_conninfo(**{**_DEFAULTS, **chosen, "options": options}), autocommit=True
        )
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise Unavailable(f"cannot reach `{shown_address(url)}`: {reason}") from error
    raw.adapters.register_dumper(str, _EscapingDumper)
    raw.adapters.register_dumper(str, _EscapingBinaryDumper)
    raw.adapters.register_dumper(EncodedArray, EncodedArrayDumper)
    raw.adapters.register_loader("text", _UnescapingLoader)
    raw.adapters.register_loader("text", _UnescapingBinaryLoader)
    return PostgresConnection(raw)


def shown_address(url: str) -> str:
    """The address without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "--database"
    host, port, name = (parts.get(each) for each in ("host", "port", "dbname"))
    return f"postgresql://{host or 'localhost'}:{port or 5432}/{name or ''}"


class OpenConnections:
    """The connections of one process to one journal: all of them can be broken off at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: WeakSet[PostgresConnection] = WeakSet()
        self._lock = Lock()
        self._broken_off = Event()

    def connect(self) -> PostgresConnection:
        """Another one. Raises `Unavailable`, at once where they are broken off."""
        self._require_whole()
        connection = connect(self._url)
        with self._lock:
            self._open.add(connection)
        try:
            self._require_whole()
        except Unavailable:
            connection.close()
            raise
        return connection

    def break_off(self) -> None:
        """Ends all there are, whatever they wait for, and lets no other be made."""
        with self._lock:
            self._broken_off.set()
            for each in self._open:
                each.break_off()

    def _require_whole(self) -> None:
        if self._broken_off.is_set():
            raise Unavailable("the service ends, and waits for the database no more")


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise Unavailable(f"the database failed: {' '.join(str(error).split())}") from error


def escape_text(text: str) -> str:
    # PostgreSQL's texts can't have U+0000: U+0001 escapes it, so that the order of values stays.
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1\2").replace("\0", "\1\1")
    return text


def _unescape(text: str) -> str:
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text


class _EscapingDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape_text(obj))


class _EscapingBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape_text(obj))


class _UnescapingLoader(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        return _unescape(str(super().load(data)))


class _UnescapingBinaryLoader(TextBinaryLoader):
    def load(self, data: Buffer) -> bytes | str:
        return _unescape(str(super().load(data)))
