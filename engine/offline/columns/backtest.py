"""The way of a backtest over exported history: what nobody read is counted, then SQL is asked."""

from __future__ import annotations

from pathlib import Path

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
from tollkeeper.engine.offline.columns.count_windows import WindowsAsked, count_windows, plan_of
from tollkeeper.engine.offline.columns.decide_rows import decide_rows
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.seen import (
    RowsAsked,
    lacking_windows,
    make_concerned,
    make_seen,
)
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.program import Rule, Scorecard


class NotExportedError(Exception):
    """An export can't answer this; the message is one line for its author."""


def backtest_columns(
    target: Path,
    account_name: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    progress: Progress,
    late: int = LATE,
) -> Report:
    """What a rule would change of an account's decisions, as `backtest_account` says it.

    Aggregates that all the recorded decisions read are taken from them; others are counted anew.
    Raises `NotExportedError` for a scorecard, and for a rule that needs events,
    `Invalid` for a list that the account has with another type, JournalError.
    """
    if isinstance(program, Scorecard):
        raise NotExportedError("a scorecard is tried on the service's data: leave --columns out")
    since, _ = period
    with open_export(target, account_name, since) as exported:
        account = exported.account
        make_declared_lists(account, program.lists, program.tables)
        candidate = candidate_of(program, account, late)
        notes = list(account_notes(account, program))
        found = Comparison()
        if exported.days:
            everyone = not was_published(account, program)
            asked = RowsAsked(exported, candidate, program, since, everyone)
            facts = make_concerned(asked)
            lacking = WindowsAsked(
                target, account_name, program, lacking_windows(asked), since, late
            )
            plan = plan_of(lacking)
            if plan.events:
                raise NotExportedError(
                    f"`{program.name}` reads metrics of events in windows that not every decision"
                    " read, which takes the service's data: leave --columns out"
                )
            counted = count_windows(lacking, exported.tables, lambda share: progress(share * 0.8))
            make_seen(asked, counted)
            found = decide_rows(asked, facts, {**_labels(exported), **labels}, progress)
            notes = [*shortfalls(plan, exported.begins, since), *notes]
    return report_of(
        program, account_name, period, found, [*candidate_notes(candidate, found), *notes]
    )


def _labels(exported: ExportedHistory) -> dict[str, Verdict]:
    """The label that counts of each payment that has one by now."""
    said: dict[str, dict[LabelSource, Verdict]] = {}
    rows = exported.tables.execute("SELECT id, source, label FROM labels WHERE valid_to IS NULL")
    for id_, source, label in rows.fetchall():
        said.setdefault(id_, {})[source] = label
    counting = ((id_, verdict_of(labels)) for id_, labels in said.items())
    return {id_: verdict for id_, verdict in counting if verdict is not None}
