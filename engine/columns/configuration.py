"""The configuration as tables, which are small enough to be written whole by each export."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec.structs import replace

from tollkeeper.engine.columns.columns import UTC_MICROSECONDS
from tollkeeper.engine.columns.layout import whole_file
from tollkeeper.engine.columns.windows import ReadingVersion
from tollkeeper.engine.columns.write import ROW_GROUP, parquet_file
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    Activated,
    Change,
    Deactivated,
    EntriesChanged,
    ListMade,
    ListReplaced,
    RecordedChange,
    RolloutCleared,
    RolloutSet,
    ScorecardShipped,
    SettingsChanged,
    VersionStored,
    encode_change,
)
from tollkeeper.engine.registry.state import Account

_INTEGER, _TEXT = pa.int64(), pa.string()
_DECIDING = (
    AccountCreated,
    Activated,
    Deactivated,
    EntriesChanged,
    ListMade,
    ListReplaced,
    RolloutCleared,
    RolloutSet,
    ScorecardShipped,
    SettingsChanged,
    VersionStored,
)
"""The kinds of changes that decisions depend on; changes of keys, webhooks and such are left out.
"""
# A content that is being staged has no `from_place` yet. An empty one is a row without a value.
_ENTRIES = (
    "SELECT c.list, c.id, c.from_place, c.to_place, e.value, e.columns, e.expires_at,"
    " max(e.from_place, c.from_place), coalesce(min(e.to_place, c.to_place), e.to_place, c.to_place)"
    " FROM list_contents c LEFT JOIN list_entries e ON e.content = c.id"
    " WHERE c.account = ? AND c.from_place IS NOT NULL ORDER BY c.id, e.value, e.from_place"
)

LIST_SCHEMA = pa.schema(
    [
        pa.field("list", _TEXT, False),
        pa.field("content", _INTEGER, False),
        pa.field("content_from", _INTEGER, False),
        pa.field("content_to", _INTEGER),
        pa.field("value", _TEXT),
        pa.field("columns", _TEXT),
        pa.field("expires_at", UTC_MICROSECONDS),
        pa.field("valid_from", _INTEGER),
        pa.field("valid_to", _INTEGER),
    ]
)
CHANGE_SCHEMA = pa.schema(
    [
        pa.field("sequence", _INTEGER, False),
        pa.field("arrived", UTC_MICROSECONDS, False),
        pa.field("change", _TEXT, False),
    ]
)
WINDOW_SCHEMA = pa.schema(
    [
        pa.field("column_name", _TEXT, False),
        pa.field("text", _TEXT, False),
        pa.field("kind", _TEXT, False),
        pa.field("name", _TEXT, False),
        pa.field("version", _INTEGER, False),
        pa.field("valid_from", _INTEGER, False),
    ]
)


def write_configuration(
    connection: sqlite3.Connection,
    target: Path,
    account: Account,
    changes: Sequence[RecordedChange],
    versions: Sequence[ReadingVersion],
) -> None:
    """Write the tables `windows`, `lists` and `changes` of an account, from its `changes`."""
    name = account.name
    _write(
        whole_file(target, "windows", name),
        WINDOW_SCHEMA,
        (
            (column.name, column.text, each.kind, each.name, each.number, each.begins)
            for each in versions
            for column in each.columns
        ),
    )
    _write(
        whole_file(target, "lists", name),
        LIST_SCHEMA,
        connection.execute(_ENTRIES, (account.number,)),
    )
    _write(
        whole_file(target, "changes", name),
        CHANGE_SCHEMA,
        (
            (each.sequence, each.at, encode_change("", _without_values(each.change)).decode())
            for each in changes
            if isinstance(each.change, _DECIDING)
        ),
    )


def _without_values(change: Change) -> Change:
    """The change without list values: an erasure would have to remove these from the export too."""
    return replace(change, values=()) if isinstance(change, EntriesChanged) else change


def _write(path: Path, schema: Any, rows: Iterable[tuple[Any, ...]]) -> None:
    left = iter(rows)
    with parquet_file(path, schema) as file:
        while batch := list(islice(left, ROW_GROUP)):
            file.put_rows(batch)
