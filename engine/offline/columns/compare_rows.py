"""Count the changes among decided rows, as a replay counts them."""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Any

from msgspec.structs import replace

from tollkeeper.engine.offline.backtest.candidate import CandidateOutcome
from tollkeeper.engine.offline.backtest.compare import (
    SHOWN_EXAMPLES,
    AmountTally,
    Cell,
    ComparedPayment,
    Comparison,
    Labels,
    OutcomePair,
)
from tollkeeper.engine.offline.columns.seen import register


def compare_rows(tables: Any, labels: Labels) -> Comparison:
    """Counts the payments of the view `decided`; `labels` are by their ids."""
    register(tables, "said_labels", ("id", "label"), list(labels.items()))
    # Ids are long: they are read only where labels need them.
    of_labels = "SELECT sequence, label FROM payments JOIN said_labels USING (id)"
    tables.execute(f"CREATE TABLE labelled AS {of_labels}")
    tables.execute(_COUNTED)
    return _read_comparison(tables)


# A condition with an action has it whatever the score: payments are counted by scores only where
# these lead to the action.
_COUNTED = f"""
CREATE TABLE counted AS
SELECT
  unrecorded, was_action, was_rule, was_condition, recommends, situation, met,
  CASE WHEN met IN (SELECT met FROM conditions WHERE action IS NULL) THEN score END AS score,
  currency, merchant, label, coalesce(updated.status, created_status) AS status,
  count(*) AS payments, sum(coalesce(hundredths, 0))::BIGINT AS hundredths,
  count(*) FILTER (len(lost) > 0 AND NOT unrecorded) AS lost,
  count(*) FILTER (decided.score IS NULL) AS scoreless,
  min(sequence) AS first, max(sequence, {SHOWN_EXAMPLES}) AS latest
FROM decided
LEFT JOIN labelled USING (sequence)
LEFT JOIN (
  SELECT payment AS sequence, status FROM states WHERE valid_from > payment AND valid_to IS NULL
) AS updated USING (sequence)
GROUP BY ALL
"""
_SHOWN = """
SELECT sequence, id, arrived, score, hundredths, currency, merchant
FROM seen WHERE sequence IN (SELECT unnest(?))
"""


def outcomes_of(table: str) -> str:
    """SQL for the rows of `decided` or `counted` with the resulting action and condition."""
    return f"""
SELECT {table}.*, conditions.rule AS now_rule, conditions.name AS now_condition,
  CASE WHEN recommends THEN coalesce(conditions.action, threshold_actions.action) END AS now_action
FROM {table}
JOIN conditions USING (met)
JOIN threshold_actions
  ON threshold_actions.situation = {table}.situation
  AND threshold_actions.score = coalesce({table}.score, 0)
"""


def _read_comparison(tables: Any) -> Comparison:
    cells: defaultdict[Cell, AmountTally] = defaultdict(AmountTally)
    examples: defaultdict[OutcomePair, list[int]] = defaultdict(list)
    lost = scoreless = 0
    ends: list[int] = []
    rows = tables.execute(
        "SELECT unrecorded, was_action, was_rule, was_condition, now_action, now_rule, now_condition,"
        " currency, merchant, label, status, payments, hundredths, lost, scoreless, first, latest"
        f" FROM ({outcomes_of('counted')})"
    ).fetchall()
    for *of, payments, hundredths, some_lost, some_scoreless, first, latest in rows:
        unrecorded, action, name, condition, *now_outcome, currency, merchant, label, status = of
        was = None if unrecorded else CandidateOutcome(action, name, condition)
        now = CandidateOutcome(*now_outcome)
        cell = Cell(was, now, currency, merchant, label, status)
        if was is None or cell.changed:
            examples[was, now] += latest
        else:
            cell = replace(cell, status=None)
        cells[cell].add(AmountTally(payments, hundredths))
        lost += some_lost
        scoreless += some_scoreless
        ends += (first, latest[0])
    latest_of = {pair: sorted(found)[-SHOWN_EXAMPLES:] for pair, found in examples.items()}
    ends = [min(ends), max(ends)] if ends else []
    wanted = sorted({*ends, *chain.from_iterable(latest_of.values())})
    shown = {
        sequence: ComparedPayment(*payment)
        for sequence, *payment in tables.execute(_SHOWN, [wanted]).fetchall()
    }
    return Comparison(
        dict(cells),
        {pair: [shown[each] for each in found] for pair, found in latest_of.items()},
        lost,
        scoreless,
        *(shown[each].arrived for each in ends),
    )
