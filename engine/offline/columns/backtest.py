"""Run a backtest over an export: count the windows that were not recorded, then query in SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.backtest.backtest import (
    account_notes,
    candidate_notes,
    shortfalls,
)
from tollkeeper.engine.offline.backtest.compare import Comparison, Labels
from tollkeeper.engine.offline.backtest.plan import plan_windows
from tollkeeper.engine.offline.backtest.report import Report, report_of
from tollkeeper.engine.offline.columns.count_windows import WindowsAsked, count_windows, plan_of
from tollkeeper.engine.offline.columns.decide_exported import decide_exported
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.rows_asked import ColumnsAsked, ask_rows
from tollkeeper.engine.offline.columns.seen import lacking_windows, make_concerned
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.program import Rule, Scorecard

PAYMENTS_AT_ONCE = 50_000
"""This many payments are decided at once, and show most kinds of changes."""


class NotExportedError(Exception):
    """An export can't answer this; the message is one line for its author."""


CompareColumns: TypeAlias = Callable[
    [ColumnsAsked, ExportedHistory, Progress], tuple[Comparison, Collection[int]]
]
"""Gives the comparison, and the indexes of the windows that had to be counted."""


def compare_in_processes(
    asked: ColumnsAsked, exported: ExportedHistory, progress: Progress
) -> tuple[Comparison, Collection[int]]:
    rows = ask_rows(asked, exported)
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
    compare: CompareColumns = compare_in_processes,
) -> Report:
    """What a program would change of an account's decisions, with the result of `backtest_account`.

    Aggregates that all recorded decisions read are taken from these; others are counted. `compare`
    does the work, by default in processes on this machine. Raises `NotExportedError` for a program
    that needs events, `Invalid` for a list that the account has with another type, JournalError.
    """
    since, until = period
    asked = ColumnsAsked(target, account_name, program, since, until, late, labels)
    with open_export(target, account_name, since) as exported:
        account, begins = exported.account, exported.begins
        make_declared_lists(account, program.lists, program.tables)
        found, counted = (
            compare(asked, exported, progress) if exported.parts else (Comparison(), ())
        )
    progress(1.0)
    plan = plan_windows(program, program.histories, full_vocabulary(), late)
    notes = candidate_notes(program, plan, found)
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
    """As `backtest_columns` for the newest payments alone, to show something while the rest is
    computed; None if windows would have to be counted.

    Raises `Invalid` and JournalError as `backtest_columns`.
    """
    since, until = period
    asked = ColumnsAsked(target, account_name, program, since, until, late, labels)
    with open_export(target, account_name, since, newest=PAYMENTS_AT_ONCE) as exported:
        make_declared_lists(exported.account, program.lists, program.tables)
        if not exported.parts:
            return None
        rows = ask_rows(asked, exported)
        facts = make_concerned(rows)
        if lacking_windows(rows):
            return None
        found = decide_exported(asked, rows, facts, {}, unwatched)
    return report_of(program, account_name, period, found, ())


def windows_asked(asked: ColumnsAsked, indexes: Collection[int]) -> WindowsAsked:
    """The windows to count. Raises `NotExportedError` for those over events."""
    windows = WindowsAsked(
        asked.target, asked.account, asked.program, tuple(indexes), asked.since, asked.late
    )
    if any(asked.program.histories[index].series.event is not None for index in indexes):
        raise NotExportedError(
            f"`{asked.program.name}` reads metrics of events in windows that not every decision"
            " read, which takes the service's data: leave --columns out"
        )
    return windows
