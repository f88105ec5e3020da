"""Backtest the newest payments alone, to show something while the rest is computed."""

from __future__ import annotations

from pathlib import Path

from tollkeeper.engine.offline.backtest.compare import Labels
from tollkeeper.engine.offline.backtest.report import Report, report_of
from tollkeeper.engine.offline.columns.decide_exported import (
    ColumnsAsked,
    decide_exported,
    rows_asked,
)
from tollkeeper.engine.offline.columns.exported import open_export
from tollkeeper.engine.offline.columns.seen import lacking_windows, make_concerned
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.program import Rule, Scorecard

PAYMENTS_AT_ONCE = 50_000
"""This many payments are decided at once, and show most kinds of changes."""


def backtest_newest(
    target: Path,
    account_name: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    late: int = LATE,
) -> Report | None:
    """As `backtest_columns` for the newest payments; None if windows would have to be counted.

    Raises `Invalid` and JournalError as `backtest_columns`.
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
