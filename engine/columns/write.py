"""Files that are in their places at once, whole and on disk, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

ROW_GROUP = 65_536
"""So many rows stand together in a file, and are in memory at once."""


@contextmanager
def placed_at_once(path: Path) -> Iterator[Path]:
    """A file to be written, which gets its name when the block ends well. Raises `OSError`."""
    # Readers of Parquet pass over names that begin so.
    unfinished = path.with_name(f"_{path.name}")
    try:
        yield unfinished
        _sync(unfinished)
        unfinished.rename(path)
        _sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TableWriter:
    """Gathers rows into groups for a file of Parquet; `rows` is how many there were."""

    def __init__(self, path: Path, schema: Any) -> None:
        self.rows = 0
        self._schema = schema
        self._waiting: list[Any] = []
        self._file = parquet.ParquetWriter(path, schema, compression="zstd")

    def put(self, arrays: list[Any]) -> None:
        """Rows by column, in the order of the schema."""
        batch = pa.Table.from_arrays(arrays, schema=self._schema)
        self.rows += batch.num_rows
        self._waiting.append(batch)
        if sum(each.num_rows for each in self._waiting) >= ROW_GROUP:
            self._write()

    def close(self) -> None:
        self._write()
        self._file.close()

    def _write(self) -> None:
        if self._waiting:
            gathered, self._waiting = pa.concat_tables(self._waiting), []
            self._file.write_table(gathered, row_group_size=ROW_GROUP)


@contextmanager
def parquet_file(path: Path, schema: Any) -> Iterator[TableWriter]:
    """Takes the rows of a file. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with placed_at_once(path) as unfinished:
        writer = TableWriter(unfinished, schema)
        try:
            yield writer
        finally:
            writer.close()


def remove_file(path: Path) -> None:
    """Removes a file, and its folder when nothing else is in it. Raises `OSError`."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
