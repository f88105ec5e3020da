"""The way of a backtest over exported history: what nobody read is counted, then SQL is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tollkeeper.engine.labels.label import LabelSource, Verdict, verdict_of
from tollkeeper.engine.offline.backtest.backtest import (
    account_notes,
    candidate_notes,
    candidate_of,
    shortfalls,
    was_published,
)
from tollkeeper.engine.offline.backtest.compare import Comparison, Labels
from tollkeeper.engine.offline.backtest.report import Report, report_of
from tollkeeper.engine.offline.columns.compare_rows import compare_rows
from tollkeeper.engine.offline.columns.count_windows import WindowsAsked, count_windows, plan_of
from tollkeeper.engine.offline.columns.decide_rows import decide_rows
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked, ask_rows
from tollkeeper.engine.offline.columns.score_rows import score_rows
from tollkeeper.engine.offline.columns.seen import lacking_windows, make_concerned, make_seen
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.program import Rule, Scorecard


class NotExportedError(Exception):
    """An export can't answer this; the message is one line for its author."""


class ColumnsAsked(NamedTuple):
    """A program over an export, for payments that arrived from `since` (µs) on; `late` (µs) is how far
    behind the latest arrival the service counts a payment. `labels` count before those exported.
    """

    target: Path
    account: str
    program: Rule | Scorecard
    since: int
    late: int
    labels: Labels


CompareColumns: TypeAlias = Callable[
    [ColumnsAsked, ExportedHistory, Progress], tuple[Comparison, Collection[int]]
]
"""What would change, and the indexes of the windows that were counted anew for that."""
PAYMENTS_AT_ONCE = 50_000
"""So many payments answer at once, and tell of most changes."""


def compare_here(
    asked: ColumnsAsked, exported: ExportedHistory, progress: Progress
) -> tuple[Comparison, Collection[int]]:
    rows = rows_asked(asked, exported)
    facts = make_concerned(rows)
    windows = windows_asked(asked, lacking_windows(rows))
    counted = count_windows(windows, exported.tables, lambda share: progress(share * 0.8))
    return decide_exported(asked, rows, facts, counted, progress), windows.indexes


def backtest_columns(
    target: Path,
    account_name: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    progress: Progress,
    late: int = LATE,
    compare: CompareColumns = compare_here,
) -> Report:
    """What a program would change of an account's decisions, as `backtest_account` says it.

    Aggregates that all the recorded decisions read are taken from them; others are counted anew.
    `compare` is where that is done, by default in processes of this machine.
    Raises `NotExportedError` for a program that needs events,
    `Invalid` for a list that the account has with another type, JournalError.
    """
    since, _ = period
    asked = ColumnsAsked(target, account_name, program, since, late, labels)
    with open_export(target, account_name, since) as exported:
        account, begins = exported.account, exported.begins
        make_declared_lists(account, program.lists, program.tables)
        found, counted = (
            compare(asked, exported, progress) if exported.parts else (Comparison(), ())
        )
    progress(1.0)
    notes = candidate_notes(candidate_of(program, account, late), found)
    lacking = shortfalls(plan_of(windows_asked(asked, counted)), begins, since)
    all_notes = [*notes, *lacking, *account_notes(account, program)]
    return report_of(program, account_name, period, found, all_notes)


def backtest_newest(
    target: Path,
    account_name: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    late: int = LATE,
) -> Report | None:
    """The same of the newest payments alone, at once; None where the program's windows are to be
    counted. Raises `Invalid` and JournalError as `backtest_columns`.
    """
    since, _ = period
    asked = ColumnsAsked(target, account_name, program, since, late, labels)
    with open_export(target, account_name, since, newest=PAYMENTS_AT_ONCE) as exported:
        make_declared_lists(exported.account, program.lists, program.tables)
        if not exported.parts:
            return None
        rows = rows_asked(asked, exported)
        facts = make_concerned(rows)
        if lacking_windows(rows):
            return None
        found = decide_exported(asked, rows, facts, {}, unwatched)
    return report_of(program, account_name, period, found, ())


def rows_asked(asked: ColumnsAsked, exported: ExportedHistory) -> RowsAsked:
    """The same of the days that were opened."""
    account, program = exported.account, asked.program
    everyone = not was_published(account, program)
    candidate = candidate_of(program, account, asked.late)
    return ask_rows(exported, candidate, asked.since, asked.late, everyone=everyone)


def windows_asked(asked: ColumnsAsked, indexes: Collection[int]) -> WindowsAsked:
    """Windows that are to be counted anew. Raises `NotExportedError` for those over events."""
    windows = WindowsAsked(
        asked.target, asked.account, asked.program, tuple(indexes), asked.since, asked.late
    )
    if any(asked.program.histories[index].series.event is not None for index in indexes):
        raise NotExportedError(
            f"`{asked.program.name}` reads metrics of events in windows that not every decision"
            " read, which takes the service's data: leave --columns out"
        )
    return windows


def decide_exported(
    asked: ColumnsAsked,
    rows: RowsAsked,
    facts: FactRows,
    counted: Mapping[int, str],
    progress: Progress,
) -> Comparison:
    """What would change by the recorded windows and those of the tables that were `counted`."""
    make_seen(rows, counted)
    if isinstance(asked.program, Scorecard):
        score_rows(rows, facts)
    decide_rows(rows, facts)
    progress(0.9)
    labels = {**_labels(rows.exported), **asked.labels}
    return compare_rows(rows.exported.tables, labels)


def _labels(exported: ExportedHistory) -> dict[str, Verdict]:
    """The label that counts of each payment that has one by now."""
    said: dict[str, dict[LabelSource, Verdict]] = {}
    rows = exported.tables.execute("SELECT id, source, label FROM labels WHERE valid_to IS NULL")
    for id_, source, label in rows.fetchall():
        said.setdefault(id_, {})[source] = label
    counting = ((id_, verdict_of(labels)) for id_, labels in said.items())
    return {id_: verdict for id_, verdict in counting if verdict is not None}
