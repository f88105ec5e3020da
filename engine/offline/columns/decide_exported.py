"""Decide the rows of an export, given the values of the windows, and compare the decisions."""

from __future__ import annotations

from collections.abc import Mapping

from tollkeeper.engine.labels.label import LabelSource, Verdict, verdict_of
from tollkeeper.engine.offline.backtest.compare import Comparison
from tollkeeper.engine.offline.columns.compare_rows import compare_rows
from tollkeeper.engine.offline.columns.decide_rows import decide_rows
from tollkeeper.engine.offline.columns.exported import ExportedHistory
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.rows_asked import ColumnsAsked, RowsAsked
from tollkeeper.engine.offline.columns.score_rows import score_rows
from tollkeeper.engine.offline.columns.seen import make_seen
from tollkeeper.engine.progress import Progress
from tollkeeper.grammar.program import Scorecard


def decide_exported(
    asked: ColumnsAsked,
    rows: RowsAsked,
    facts: FactRows,
    counted: Mapping[int, str],
    progress: Progress,
) -> Comparison:
    """The comparison, from the recorded windows and from the tables of `counted` ones."""
    make_seen(rows, counted)
    if isinstance(asked.program, Scorecard):
        score_rows(rows, facts)
    decide_rows(rows, facts)
    progress(0.9)
    labels = {**_labels(rows.exported), **asked.labels}
    return compare_rows(rows.exported.tables, labels)


def _labels(exported: ExportedHistory) -> dict[str, Verdict]:
    """The payments' present labels."""
    verdicts: dict[str, dict[LabelSource, Verdict]] = {}
    rows = exported.tables.execute("SELECT id, source, label FROM labels WHERE valid_to IS NULL")
    for id_, source, label in rows.fetchall():
        verdicts.setdefault(id_, {})[source] = label
    counting = ((id_, verdict_of(labels)) for id_, labels in verdicts.items())
    return {id_: verdict for id_, verdict in counting if verdict is not None}
