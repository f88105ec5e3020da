"""Convert rows of CSV or Parquet to lines of JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from tollkeeper.engine.offline.own_folder import own_folder
from tollkeeper.engine.offline.testing.streams import StreamError

_JSON_COLUMNS = ("transactions", "metadata", "device.headers", "backend.headers")
"""Columns of CSV that hold JSON."""
OTHER_MEMBERS = ("at", "decision")
"""The members of a line besides the payment."""


@contextmanager
def json_lines(path: Path) -> Iterator[Path]:
    """A temporary file with a line of JSON for each row of `path`.

    Raises `StreamError`.
    """
    with own_folder("rows") as folder:
        made = folder / f"{path.stem}.jsonl"
        with made.open("w", encoding="utf-8") as file:
            for row in FORMATS[path.suffix](path):
                file.write(json.dumps(_line(row), default=_plain) + "\n")
        yield made


def _plain(value: Any) -> float | str:
    """A number for a decimal of Parquet, text for its times."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    payment: dict[str, Any] = {}
    line: dict[str, Any] = {"payment": payment}
    for column, value in row.items():
        if value is not None:
            beside = column.partition(".")[0] in OTHER_MEMBERS
            _set_member(line if beside else payment, column.split("."), value)
    return line


def _set_member(into: dict[str, Any], path: list[str], value: Any) -> None:
    *above, last = path
    for name in above:
        into = into.setdefault(name, {})
        if not isinstance(into, dict):
            raise StreamError(f"column `{name}` has a value and columns of its own")
    into[last] = value


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                yield {
                    column: _read(column, text, f"{path}:{number}")
                    for column, text in row.items()
                    if column and text
                }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StreamError(f"{path} can't be read: {error}") from None


def _read(column: str, text: str, place: str) -> Any:
    try:
        if column in _JSON_COLUMNS:
            return json.loads(text)
        if column in ("amount", "decision.score"):
            return float(text)
        if column == "analyze.bot_behaviour":
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError, RecursionError):
        raise StreamError(f"{place}: `{column}` can't be read: {text[:40]}") from None
    return text


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    except ImportError:
        raise StreamError(
            f"{path} can't be read: Parquet needs `pip install tollkeeper[backtest]`"
        ) from None
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from (_without_nulls(row) for row in batch.to_pylist())
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise StreamError(f"{path} can't be read: {error}") from None


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


FORMATS = {".csv": _csv_rows, ".parquet": _parquet_rows}
