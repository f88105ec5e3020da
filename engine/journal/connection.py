"""What the journal's queries ask of a database's connection, SQLite's own or PostgreSQL's.

Their SQL is what both databases understand, but for hints that name an index: `INDEXED BY` is taken
out where it isn't known (`postgres/connection.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

Parameters = Sequence[Any] | Mapping[str, Any]


class FoundRows(Protocol):
    """What a statement found, and how many rows it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A statement by itself is a transaction; `with` ends one that `BEGIN IMMEDIATE` began."""

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
