"""Open an account's export as tables of DuckDB, with the account's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb

from tollkeeper.engine.columns.layout import (
    DAY_TABLES,
    ExportProgress,
    day_number,
    part_file,
    read_progress,
    whole_file,
)
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.columns.own_functions import make_own_functions
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.programs.compile.functions import LAST_INSTANT
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.changes import RecordedChange
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.state import Account, Configuration, fold_changes

NUMBER = 1
"""The account's number while an export is read, which has only one."""
_CHANGES = "SELECT sequence, epoch_us(arrived), change FROM changes ORDER BY sequence"
_FIRST_ARRIVAL = "SELECT epoch_us(min(arrived)) FROM read_parquet(?)"


@dataclass(frozen=True, slots=True)
class ExportedHistory:
    """`tables` has a view for each table of the account, and the language's own functions; `changes`
    are the configuration's, `lists` the account's lists and tables. `progress` is the export's, `parts`
    are those in `tables`; `begins` (µs) is the arrival of the first exported payment.
    """

    tables: Any
    changes: tuple[RecordedChange, ...]
    account: Account
    lists: RecordedLists
    progress: ExportProgress
    parts: tuple[str, ...]
    begins: int | None


@contextmanager
def open_export(
    target: Path, name: str, begin: int, end: int = LAST_INSTANT, newest: int | None = None
) -> Iterator[ExportedHistory]:
    """Open an account's export, with payments from the day of `begin` to that of `end` (µs); with
    `newest`, only the parts that have that many newest payments.

    Raises `JournalError` for a folder that is no export, or has nothing of the account.
    """
    progress = read_progress(target, name)
    if progress is None:
        raise JournalError(f"`{target}` is no export with an account `{name}`")
    if progress.sequence < progress.target:
        raise JournalError(f"the export of `{name}` in `{target}` was cut off: run it again")
    earliest, latest = begin // DAY, end // DAY
    parts = tuple(each for each in sorted(progress.parts) if earliest <= day_number(each) <= latest)
    if newest is not None:
        parts = _newest_parts(parts, progress, newest)
    try:
        with closing(duckdb.connect()) as tables:
            tables.execute("SET TimeZone = 'UTC'")
            tables.execute("SET enable_progress_bar = false")
            make_own_functions(tables)
            for table in DAY_TABLES:
                files = [str(part_file(target, table, name, each)) for each in parts]
                _make_view(tables, table, files)
            for whole in ("windows", "lists", "changes"):
                _make_view(tables, whole, [str(whole_file(target, whole, name))])
            changes = tuple(_recorded_changes(tables))
            state = fold_changes(Configuration(), changes)
            begins = None
            if progress.parts:
                first = part_file(target, "payments", name, min(progress.parts))
                ((begins,),) = tables.execute(_FIRST_ARRIVAL, [str(first)]).fetchall()
            account = find_account(state, name)
            specs = {name: each.spec for name, each in account.lists.items()}
            lists = RecordedLists(tables, specs)
            yield ExportedHistory(tables, changes, account, lists, progress, parts, begins)
    except duckdb.IOException as error:
        raise JournalError(f"`{target}` can't be read: {error}") from error


def _newest_parts(parts: tuple[str, ...], progress: ExportProgress, newest: int) -> tuple[str, ...]:
    held = accumulate(progress.parts[each].payments for each in reversed(parts))
    wanted = sum(1 for payments in held if payments < newest) + 1
    return parts[-wanted:]


def _make_view(tables: Any, table: str, files: list[str]) -> None:
    if files:
        tables.read_parquet(files, union_by_name=True).create_view(table)


def _recorded_changes(tables: Any) -> Iterator[RecordedChange]:
    rows = tables.execute(_CHANGES).fetchall()
    return recorded_changes(
        Entry(sequence, NUMBER, Kind.CHANGE, "", arrived, 0, change.encode())
        for sequence, arrived, change in rows
    )
