"""Put an export's configuration into a journal in memory, so that code for journals can read it."""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.offline.columns.exported import NUMBER, ExportedHistory

_CHANGES = "SELECT sequence, epoch_us(arrived), change FROM changes ORDER BY sequence"
_CONTENTS = "SELECT DISTINCT content, list, content_from, content_to FROM lists"
_ENTRIES = (
    "SELECT content, value, columns, epoch_us(expires_at), NULL, NULL, valid_from, valid_to"
    " FROM lists WHERE value IS NOT NULL"
)
_BATCH = 10_000


@contextmanager
def configuration_as_journal(exported: ExportedHistory) -> Iterator[sqlite3.Connection]:
    """A journal in memory with the changes and the lists of the account, whose number is `NUMBER`."""
    # Imported here: that takes longer than most backtests, and few need it.
    from sqlite_utils import Database

    from tollkeeper.engine.journal.migrations import migrations

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as journal:
        migrations.apply(Database(journal))
        _fill(exported.tables, journal)
        yield journal


def _fill(tables: Any, journal: sqlite3.Connection) -> None:
    for row in _rows(tables, _CHANGES):
        journal.execute(
            "INSERT INTO journal (place, account, kind, id, arrived, time, body)"
            f" VALUES (?, {NUMBER}, {Kind.CHANGE:d}, '', ?, 0, CAST(? AS BLOB))",
            row,
        )
    journal.executemany(
        "INSERT INTO list_contents (id, account, list, from_place, to_place, staged)"
        f" VALUES (?, {NUMBER}, ?, ?, ?, 0)",
        _rows(tables, _CONTENTS),
    )
    journal.executemany(
        "INSERT INTO list_entries (content, value, columns, expires_at, note, by, from_place,"
        " to_place) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        _rows(tables, _ENTRIES),
    )
    journal.commit()


def _rows(tables: Any, query: str) -> Iterator[tuple[Any, ...]]:
    found = tables.cursor().execute(query)
    while rows := found.fetchmany(_BATCH):
        yield from rows
