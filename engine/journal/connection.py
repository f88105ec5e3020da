"""The database connection that the journal's queries use, SQLite's or PostgreSQL's.

The queries are written in the SQL that both databases understand, except `INDEXED BY`, which
`postgres/connection.py` removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

Parameters = Sequence[Any] | Mapping[str, Any]


class FoundRows(Protocol):
    """A statement's result: the rows it found, or the number of rows it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A single statement is a transaction; `with` commits or rolls back what `BEGIN IMMEDIATE`
    began."""

    def execute(self, query: str, parameters: Any = ..., /) -> FoundRows: ...

    def executemany(self, query: str, parameters: Iterable[Any], /) -> FoundRows: ...

    def close(self) -> None: ...

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Any: ...
