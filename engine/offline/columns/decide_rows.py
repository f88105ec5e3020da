"""A rule over the rows of an export: the conditions that SQL says exactly, then the decider's own.

The conditions are asked in their order. Up to the first one that SQL can't say exactly, SQL decides;
what is left then is decided by the compiled rule over batches of Arrow.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from tollkeeper.engine.columns.columns import carried_values
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.backtest.candidate import (
    CandidateOutcome,
    PastDecision,
    Situation,
    outcome_of,
)
from tollkeeper.engine.offline.backtest.compare import (
    SHOWN_EXAMPLES,
    AmountTally,
    Cell,
    ComparedPayment,
    Comparison,
    Labels,
    OutcomePair,
)
from tollkeeper.engine.offline.backtest.stored import configured_history
from tollkeeper.engine.offline.columns.exported import NUMBER
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.seen import (
    RowsAsked,
    raw_window,
    register,
    translation_of,
    windows_of,
)
from tollkeeper.engine.offline.columns.slices import SequenceSlices
from tollkeeper.engine.offline.columns.translate import DIALECT, NotExactError
from tollkeeper.engine.progress import Progress
from tollkeeper.grammar.program import Rule

_BATCH = 20_000
_MOST_SQL = 200_000
"""Characters of a condition in SQL; lets stand in it in full, again and again."""


def decide_rows(
    asked: RowsAsked, facts: FactRows, labels: Labels, progress: Progress
) -> Comparison:
    """What would change, counted as a replay counts it."""
    tables, rule = asked.exported.tables, asked.rule
    said = _sayable(asked, facts)
    progress(0.3)
    named = [(number, each.name, each.action) for number, each in enumerate(rule.conditions)]
    register(tables, "conditions", ("met", "name", "action"), [*named, (-1, None, rule.otherwise)])
    tables.execute("CREATE TABLE rest (sequence BIGINT, met BIGINT)")
    if len(said) < len(rule.conditions):
        _decide_rest(asked, facts, said)
    met = " ".join(f"WHEN {each} THEN {number}" for number, each in enumerate(said))
    met = f"CASE {met} ELSE -1 END" if said else "-1"
    tables.execute(
        f"CREATE VIEW decided AS SELECT seen.*, coalesce(rest.met, {met}) AS met"
        " FROM seen LEFT JOIN rest USING (sequence)"
    )
    register(tables, "said_labels", ("id", "label"), list(labels.items()))
    # Ids are long: they are read where something is known by them, and nowhere else.
    of_labels = "SELECT sequence, label FROM payments JOIN said_labels USING (id)"
    tables.execute(f"CREATE TABLE labelled AS {of_labels}")
    tables.execute(_COUNTED)
    progress(0.9)
    found = _compared(tables, rule)
    progress(1.0)
    return found


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
SELECT sequence, id, epoch_us(arrived), CAST(decision.score * 100 AS BIGINT),
  CAST(amount * 100 AS BIGINT), currency, merchant.id
FROM payments WHERE sequence IN (SELECT unnest(?))
"""


def outcomes_of(table: str) -> str:
    """In SQL, the rows of `decided` or `counted` with the action and the condition that they lead to."""
    return f"""
SELECT {table}.*, conditions.name AS now_condition,
  CASE WHEN recommends THEN coalesce(conditions.action, threshold_actions.action) END AS now_action
FROM {table}
JOIN conditions USING (met)
JOIN threshold_actions
  ON threshold_actions.situation = {table}.situation
  AND threshold_actions.score = coalesce({table}.score, 0)
"""


def _compared(tables: Any, rule: Rule) -> Comparison:
    cells: defaultdict[Cell, AmountTally] = defaultdict(AmountTally)
    examples: defaultdict[OutcomePair, list[int]] = defaultdict(list)
    lost = scoreless = 0
    ends: list[int] = []
    rows = tables.execute(
        "SELECT unrecorded, was_action, was_rule, was_condition, now_action, now_condition,"
        " currency, merchant, label, status, payments, hundredths, lost, scoreless, first, latest"
        f" FROM ({outcomes_of('counted')})"
    ).fetchall()
    for *of, payments, hundredths, some_lost, some_scoreless, first, latest in rows:
        unrecorded, action, name, condition, now_action, now_condition, *alike = of
        was = None if unrecorded else CandidateOutcome(action, name, condition)
        now = CandidateOutcome(now_action, rule.name, now_condition)
        cell = Cell(was, now, *alike)
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


def _sayable(asked: RowsAsked, facts: FactRows) -> list[str]:
    """The conditions in SQL, up to the first that it can't say exactly of all the payments."""
    found: list[str] = []
    translation, guards = translation_of(asked.rule, facts), []
    for condition in asked.rule.conditions:
        translation.guards.clear()
        try:
            text = translation.test(condition.when).sql(DIALECT)
        except (NotExactError, RecursionError):
            break
        if len(text) > _MOST_SQL:
            break
        tests = [each.sql(DIALECT) for each in translation.guards]
        guards.append(" AND ".join(f"coalesce({each}, TRUE)" for each in tests) or "TRUE")
        found.append(text)
    if not found:
        return found
    asked_all = ", ".join(f"coalesce(bool_and({each}), TRUE)" for each in guards)
    query = f"SELECT {asked_all} FROM seen"
    (held,) = asked.exported.tables.execute(query).fetchall()
    return found[: next((at for at, each in enumerate(held) if not each), len(found))]


def _decide_rest(asked: RowsAsked, facts: FactRows, said: Sequence[str]) -> None:
    """Fills `rest`: what the rule decides about payments that meet none of the conditions `said`."""
    tables, decide = asked.exported.tables, asked.candidate.decide
    slices = SequenceSlices(_rest_batches(asked, facts, said))
    span = (0, asked.exported.progress.sequence)
    changes = asked.exported.changes
    history = configured_history(changes, NUMBER, asked.rule, span, slices.between)
    situation = history.situation
    numbers: dict[str | None, int] = {None: -1}
    numbers |= {each.name: number for number, each in enumerate(asked.rule.conditions)}
    for each in history.happened:
        if isinstance(each, Situation):
            situation = each
            continue
        found = []
        for entry in each:
            row: Any = entry.body
            read, was, values = row
            outcome = outcome_of(decide(read, was, values, situation))
            found.append((entry.sequence, numbers[outcome.condition]))
        register(tables, "found", ("sequence", "met"), found)
        tables.execute("INSERT INTO rest FROM found")


def _rest_batches(asked: RowsAsked, facts: FactRows, said: Sequence[str]) -> Iterator[list[Entry]]:
    """Payments as entries whose bodies are their facts, what was decided, and what was read."""
    windows = windows_of(asked.rule)
    columns = [*facts.columns, *(raw_window(index) for index in range(len(windows)))]
    undecided = " AND ".join(f"NOT coalesce({each}, FALSE)" for each in said) or "TRUE"
    reader = (
        asked.exported.tables.cursor()
        .sql(
            f"SELECT sequence, id, arrived, score, {', '.join(columns)} FROM seen"
            f" WHERE {undecided} ORDER BY sequence"
        )
        .to_arrow_reader(_BATCH)
    )
    for batch in reader:
        sequences, ids, arrived, scores = (batch.column(n).to_pylist() for n in range(4))
        read = [
            carried_values(window.type, batch.column(raw_window(index)).to_pylist())
            for index, window in enumerate(windows)
        ]
        values = zip(*read, strict=True) if read else ((),) * len(ids)
        rows = zip(facts.facts(batch, arrived), map(_past, scores), values, strict=True)
        yield [
            Entry(sequence, NUMBER, Kind.PAYMENT, id_, at, 0, row)  # type: ignore[arg-type]
            for sequence, id_, at, row in zip(sequences, ids, arrived, rows, strict=True)
        ]


def _past(score: int | None) -> PastDecision:
    return PastDecision(score=score)
