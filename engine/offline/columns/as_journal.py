"""A history of an export's rows: its configuration is put into a journal in memory, so that code for
journals can read it."""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.backtest.replay import HistoryBatches
from tollkeeper.engine.offline.backtest.stored import EntriesBetween, configured_history
from tollkeeper.engine.offline.columns.exported import NUMBER, ExportedHistory
from tollkeeper.grammar.program import Rule, Scorecard

_CHANGES = "SELECT sequence, epoch_us(arrived), change FROM changes ORDER BY sequence"
_CONTENTS = "SELECT DISTINCT content, list, content_from, content_to FROM lists"
_ENTRIES = (
    "SELECT content, value, columns, epoch_us(expires_at), NULL, NULL, valid_from, valid_to"
    " FROM lists WHERE value IS NOT NULL"
)
_BATCH = 10_000


@contextmanager
def exported_history(
    exported: ExportedHistory, program: Rule | Scorecard, begin: int, batches: Iterable[list[Entry]]
) -> Iterator[HistoryBatches]:
    """The batches of entries after the sequence number `begin`, with the situations that they met."""
    # Imported here: that takes longer than most backtests, and few need it.
    from sqlite_utils import Database

    from tollkeeper.engine.journal.migrations import migrations

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as journal:
        migrations.apply(Database(journal))
        _fill(exported.tables, journal)
        span = (begin, exported.progress.sequence)
        yield configured_history(journal, NUMBER, program, span, _cut(batches)).happened


def _cut(batches: Iterable[list[Entry]]) -> EntriesBetween:
    """Gives the entries of consecutive spans, from batches in the order of sequence numbers."""
    later, left = iter(batches), list[Entry]()

    def between(_after: int, up_to: int) -> Iterator[list[Entry]]:
        nonlocal left
        while left := left or next(later, []):
            end = bisect_right(left, up_to, key=lambda entry: entry.sequence)
            batch, left = left[:end], left[end:]
            if batch:
                yield batch
            if left:
                return

    return between


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
