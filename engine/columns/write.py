"""Write rows to Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from tollkeeper.engine.columns.files import placed_at_once

ROW_GROUP = 65_536
"""The rows of a row group, which are in memory at once."""


class TableWriter:
    """Writes rows to a Parquet file in row groups; `rows` counts them."""

    def __init__(self, path: Path, schema: Any) -> None:
        self.rows = 0
        self._schema = schema
        self._waiting: list[Any] = []
        self._file = parquet.ParquetWriter(path, schema, compression="zstd")

    def put(self, arrays: list[Any]) -> None:
        """Add rows, given by column in the order of the schema."""
        batch = pa.Table.from_arrays(arrays, schema=self._schema)
        self.rows += batch.num_rows
        self._waiting.append(batch)
        if sum(each.num_rows for each in self._waiting) >= ROW_GROUP:
            self._write()

    def put_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows, given by row."""
        if rows:
            columns = zip(zip(*rows, strict=True), self._schema, strict=True)
            self.put([pa.array(values, field.type) for values, field in columns])

    def close(self) -> None:
        self._write()
        self._file.close()

    def _write(self) -> None:
        if self._waiting:
            gathered, self._waiting = pa.concat_tables(self._waiting), []
            self._file.write_table(gathered, row_group_size=ROW_GROUP)


@contextmanager
def parquet_file(path: Path, schema: Any) -> Iterator[TableWriter]:
    """A writer for a new file, which is complete when the block succeeds. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with placed_at_once(path) as unfinished:
        writer = TableWriter(unfinished, schema)
        try:
            yield writer
        finally:
            writer.close()
