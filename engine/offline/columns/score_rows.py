"""Score the rows of an export by a scorecard, whose score replaces the recorded one.

Doubles are added in the order in which the compiled scorecard adds them, and a score is looked up
among the logits at which it changes, so SQL rounds nothing. Close to such a logit, where rounding
could matter, the compiled scorecard is called.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from sqlglot import exp

from tollkeeper.engine.offline.columns.compiled_rows import compiled_decisions
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.let_columns import translate_lets
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked
from tollkeeper.engine.offline.columns.seen import register
from tollkeeper.engine.offline.columns.sql import (
    DIALECT,
    NotExactError,
    guarded,
    sql_binary,
    sql_call,
    sql_literal,
    sql_of,
    sql_steps,
    sql_where,
)
from tollkeeper.engine.offline.columns.translate import Translation
from tollkeeper.engine.programs.compile.functions import score
from tollkeeper.grammar.program import Scorecard

UNSURE = 1e-12
"""Closer than this to a logit at which the score changes, the rounding of doubles may matter."""
_SURE = 64.0
"""A logit of this absolute value gives a score of 0 or 100."""


def score_rows(asked: RowsAsked, facts: FactRows) -> None:
    """Replace `seen` by a view with the scorecard's scores."""
    tables, scorecard = asked.exported.tables, asked.tried.program
    assert isinstance(scorecard, Scorecard)
    tables.execute("CREATE TABLE scored (sequence BIGINT, score BIGINT)")
    # The columns of the scorecard's lets are added to a view of its own: nothing reads them later.
    tables.execute("ALTER VIEW seen RENAME TO unscored")
    tables.execute("CREATE VIEW seen AS FROM unscored")
    logit = _sayable_logit(asked, facts, scorecard)
    if logit is not None:
        tables.execute(
            f"INSERT INTO scored WITH counted AS MATERIALIZED (SELECT sequence, {logit} AS logit FROM seen)"
            f" SELECT sequence, {_rounded()} AS found FROM counted WHERE found IS NOT NULL"
        )
    unsaid = "TRUE" if logit is None else "sequence NOT IN (SELECT sequence FROM scored)"
    for batch in compiled_decisions(asked, facts, asked.tried, unsaid):
        found = [(sequence, decision.score) for sequence, decision in batch]
        register(tables, "found", ("sequence", "score"), found)
        tables.execute("INSERT INTO scored FROM found")
    tables.execute(
        "CREATE OR REPLACE VIEW seen AS SELECT unscored.* REPLACE (scored.score AS score)"
        " FROM unscored JOIN scored USING (sequence)"
    )


@cache
def score_bounds() -> Sequence[float]:
    """The logits near which the scores of 1 to 100 begin."""
    return tuple(map(_first_logit, range(1, 101)))


@cache
def _rounded() -> str:
    """SQL for the score of the column `logit`; NULL close to a logit at which it changes."""
    beside = [each + shift for each in score_bounds() for shift in (-UNSURE, UNSURE)]
    amounts = [each for wanted in range(1, 101) for each in (exp.null(), sql_literal(wanted))]
    steps = sql_steps(
        exp.column("logit"), list(map(sql_literal, beside)), [sql_literal(0), *amounts]
    )
    return steps.sql(DIALECT)


def _first_logit(wanted: int) -> float:
    below, there = -_SURE, _SURE
    while (middle := (below + there) / 2) not in (below, there):
        if score(middle) >= wanted:
            there = middle
        else:
            below = middle
    return there


def logit_of(scorecard: Scorecard, translation: Translation) -> exp.Expression:
    """SQL for the logit. Raises `NotExactError`."""
    baseline = scorecard.baseline
    total = sql_literal(math.log(baseline / (1 - baseline)))
    for signal in scorecard.signals:
        adds = translation.double(signal.adds)
        if signal.when is not None:
            adds = sql_where(translation.test(signal.when), adds)
        total = sql_binary(exp.Add, total, sql_call("coalesce", adds, sql_literal(0.0)))
    return total


def _sayable_logit(asked: RowsAsked, facts: FactRows, scorecard: Scorecard) -> str | None:
    """SQL for the logit, None if it is not exact for all payments."""
    tables, translation = asked.exported.tables, translate_lets(asked, facts, asked.tried)
    try:
        logit = sql_of(logit_of(scorecard, translation))
    except (NotExactError, RecursionError):
        return None
    query = f"SELECT {guarded(translation.guards)} FROM seen"
    ((is_exact,),) = tables.execute(query).fetchall()
    return logit if is_exact else None
