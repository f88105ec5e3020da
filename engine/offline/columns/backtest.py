"""The way of a backtest over exported history: asked in SQL, or replayed for windows nobody read."""

from __future__ import annotations

from pathlib import Path

from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.labels.label import LabelSource, Verdict, verdict_of
from tollkeeper.engine.offline.backtest.backtest import (
    account_notes,
    candidate_notes,
    candidate_of,
    compare_history,
    shortfalls,
    was_published,
)
from tollkeeper.engine.offline.backtest.candidate import Candidate
from tollkeeper.engine.offline.backtest.compare import Comparison, Labels
from tollkeeper.engine.offline.backtest.report import Report, report_of
from tollkeeper.engine.offline.columns.decide_rows import (
    RowsAsked,
    are_recorded,
    decide_rows,
    make_concerned,
)
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.replayed import exported_candidate, exported_history
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

    Aggregates that all the recorded decisions read are taken from them; for others history is
    replayed. Raises `NotExportedError` for a scorecard, and for a rule that needs events or
    labels,
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
        if not exported.days:
            found: Comparison | None = Comparison()
        else:
            everyone = not was_published(account, program)
            asked = RowsAsked(exported, candidate, program, since, everyone)
            found = _from_recorded(asked, labels, progress)
    if found is None:
        found, lacking = _replayed(
            target, account_name, candidate, program, since, labels, progress
        )
        notes = [*lacking, *notes]
    return report_of(
        program, account_name, period, found, [*candidate_notes(candidate, found), *notes]
    )


def _from_recorded(asked: RowsAsked, labels: Labels, progress: Progress) -> Comparison | None:
    """None where the rule reads what some of the decisions did not."""
    facts = make_concerned(asked)
    if not are_recorded(asked):
        return None
    return decide_rows(asked, facts, {**_labels(asked.exported), **labels}, progress)


def _replayed(
    target: Path,
    account_name: str,
    candidate: Candidate,
    rule: Rule,
    since: int,
    labels: Labels,
    progress: Progress,
) -> tuple[Comparison, list[str]]:
    plan = candidate.plan
    if plan.events or plan.reads_labels:
        read = "metrics of events" if plan.events else "labels"
        raise NotExportedError(
            f"`{rule.name}` reads {read} in windows that not every decision read, which takes the"
            " service's data: leave --columns out"
        )
    start = None if plan.reach is None else since - plan.reach
    with open_export(
        target, account_name, (start or TIME_TO_ARRIVAL) - TIME_TO_ARRIVAL
    ) as exported:
        history = exported_history(exported, candidate, rule, start)
        labels = {**_labels(exported), **labels}
        tried = exported_candidate(candidate)
        found = compare_history(tried, history, since, labels, progress)
        return found, list(shortfalls(candidate, history, since))


def _labels(exported: ExportedHistory) -> dict[str, Verdict]:
    """The label that counts of each payment that has one by now."""
    said: dict[str, dict[LabelSource, Verdict]] = {}
    rows = exported.tables.execute("SELECT id, source, label FROM labels WHERE valid_to IS NULL")
    for id_, source, label in rows.fetchall():
        said.setdefault(id_, {})[source] = label
    counting = ((id_, verdict_of(labels)) for id_, labels in said.items())
    return {id_: verdict for id_, verdict in counting if verdict is not None}
