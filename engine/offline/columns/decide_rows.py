"""A rule over the rows of an export: the conditions that SQL says exactly, then the decider's own.

The conditions are asked in their order. Up to the first one that SQL can't say exactly, SQL decides;
what is left then is decided by the compiled rule over batches of Arrow. Aggregates are those that the
recorded decisions read.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec.structs import replace
from sqlglot import exp

from tollkeeper.engine.columns.columns import carried_values
from tollkeeper.engine.columns.windows import WindowColumn, window_columns
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.backtest.candidate import (
    Candidate,
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
from tollkeeper.engine.offline.columns.exported import NUMBER, ExportedHistory
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.slices import SequenceSlices
from tollkeeper.engine.offline.columns.translate import DIALECT, NotExactError, Translation
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.decider import action_at
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.changes import AccountSettings, SettingsChanged
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import History, Rule

_BATCH = 20_000
_MOST_SQL = 200_000
"""Characters of a condition in SQL; lets stand in it in full, again and again."""
_DIGITS = 18
_SCORES = range(101)


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """A rule over payments that arrived from `since` (µs) on; `everyone` says that every payment
    that asked for a recommendation gets it, else those that name it or have it by default.
    """

    exported: ExportedHistory
    candidate: Candidate
    rule: Rule
    since: int
    everyone: bool


def make_concerned(asked: RowsAsked) -> FactRows:
    """Makes the view `concerned`: the payments that get the rule, with what it reads of them."""
    tables = asked.exported.tables
    in_force = _make_situations(asked)
    facts = FactRows(asked.candidate.plan.read, "payment")
    columns = {
        "sequence": "payment.sequence",
        "id": "payment.id",
        "arrived": "epoch_us(payment.arrived)",
        "currency": "payment.currency",
        "merchant": "payment.merchant.id",
        "hundredths": "CAST(payment.amount * 100 AS BIGINT)",
        "recommends": "coalesce(payment.analyze.bot_behaviour, FALSE)",
        "situation": "situation.number",
        "created_status": "payment.status",
        "unrecorded": "payment.decision IS NULL",
        "was_action": "payment.decision.action",
        "was_rule": "payment.decision.rule",
        "was_version": "payment.decision.version",
        "was_condition": "payment.decision.condition",
        "scorecard": "payment.decision.scorecard",
        "score": "CAST(payment.decision.score * 100 AS BIGINT)",
        "lost": "payment.decision.lost",
        **facts.columns,
    }
    there = {name for name, *_ in tables.execute("DESCRIBE payments").fetchall()}
    for index, window in enumerate(_windows(asked.rule)):
        columns[raw_window(index)] = f"payment.{window.name}" if window.name in there else "NULL"
        columns[read_window(index)] = carried_window(window.type, columns[raw_window(index)])
    selected = ", ".join(f"{said} AS {name}" for name, said in columns.items())
    tables.execute(
        f"CREATE VIEW concerned AS SELECT {selected} FROM payments AS payment"
        f" JOIN situations AS situation ON situation.number = {in_force}"
        f" WHERE epoch_us(payment.arrived) >= {asked.since} AND {_concerns(asked)}"
    )
    return facts


def are_recorded(asked: RowsAsked) -> bool:
    """Whether every concerned payment's decision read, exactly, all that the rule reads."""
    columns = {each.name for each in _windows(asked.rule)}
    if not columns:
        return True
    tables = asked.exported.tables
    readers: defaultdict[tuple[str, str, int, int], set[str]] = defaultdict(set)
    rows = "SELECT kind, name, version, valid_from, column_name FROM windows"
    for kind, name, version, begins, column in tables.execute(rows).fetchall():
        readers[kind, name, version, begins].add(column)
    shipped = sorted(
        begins for kind, _, version, begins in readers if (kind, version) == ("scorecard", 0)
    )
    era = " + ".join(["0", *(f"(sequence > {begins})::INT" for begins in shipped)])
    deciders = tables.execute(
        "SELECT DISTINCT was_rule, was_version, CASE WHEN score IS NOT NULL THEN scorecard END,"
        f" {era}, CASE WHEN len(lost) > 0 THEN lost END FROM concerned"
    ).fetchall()
    for rule, version, scorecard, begun, lost in deciders:
        begins = shipped[begun - 1] if begun else None
        read = {
            column
            for (kind, name, number, since), found in readers.items()
            if (kind, name, number) == ("rule", rule, version)
            or (kind == "scorecard" and number == scorecard and (number or since == begins))
            for column in found
        }
        if not columns <= read.difference(lost or ()):
            return False
    return True


def decide_rows(
    asked: RowsAsked, facts: FactRows, labels: Labels, progress: Progress
) -> Comparison:
    """What would change, counted as a replay counts it."""
    tables, rule = asked.exported.tables, asked.rule
    said = _sayable(asked, facts)
    progress(0.3)
    named = [(number, each.name, each.action) for number, each in enumerate(rule.conditions)]
    _register(tables, "conditions", ("met", "name", "action"), [*named, (-1, None, rule.otherwise)])
    tables.execute("CREATE TABLE rest (sequence BIGINT, met BIGINT)")
    if len(said) < len(rule.conditions):
        _decide_rest(asked, facts, said)
    met = " ".join(f"WHEN {each} THEN {number}" for number, each in enumerate(said))
    met = f"CASE {met} ELSE -1 END" if said else "-1"
    tables.execute(
        f"CREATE VIEW decided AS SELECT seen.*, coalesce(rest.met, {met}) AS met"
        " FROM concerned AS seen LEFT JOIN rest USING (sequence)"
    )
    _register(tables, "said_labels", ("id", "label"), list(labels.items()))
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


def _make_situations(asked: RowsAsked) -> str:
    """The tables of settings by their numbers, and of what a score leads to in each.

    In SQL, the number of those in force for a payment: a join in order of time would sort it all.
    """
    changes = recorded_changes(reads.changes(asked.exported.changes, 0))
    settings = [(0, AccountSettings())]
    settings += [
        (each.sequence, each.change.settings)
        for each in changes
        if isinstance(each.change, SettingsChanged)
    ]
    _register(
        asked.exported.tables,
        "situations",
        ("number", "default_rule"),
        [(number, each.default_rule) for number, (_, each) in enumerate(settings)],
    )
    _register(
        asked.exported.tables,
        "threshold_actions",
        ("situation", "score", "action"),
        [
            (number, score, action_at(score, each.thresholds))
            for number, (_, each) in enumerate(settings)
            for score in _SCORES
        ],
    )
    later = [begins for begins, _ in settings[1:]]
    ends = " ".join(
        f"WHEN payment.sequence < {end} THEN {number}" for number, end in enumerate(later)
    )
    return f"CASE {ends} ELSE {len(later)} END" if later else "0"


def _register(
    tables: Any, name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    values = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    numbers = {"met", "sequence", "number", "situation", "score"}
    types = [(each, pa.int64() if each in numbers else pa.string()) for each in columns]
    arrays = [pa.array(values.get(each, ()), kind) for each, kind in types]
    tables.register("made", pa.table(arrays, schema=pa.schema(types)))
    tables.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made")
    tables.unregister("made")


def _concerns(asked: RowsAsked) -> str:
    if asked.everyone:
        return "payment.analyze.bot_behaviour"
    wanted = (
        "coalesce(payment.analyze.rule.name,"
        " CASE WHEN payment.analyze.bot_behaviour THEN situation.default_rule END)"
    )
    return f"{wanted} = {exp.Literal.string(asked.rule.name).sql(DIALECT)}"


def _windows(rule: Rule) -> tuple[WindowColumn, ...]:
    return window_columns(rule, {})


def read_window(index: int) -> str:
    """The column with the values of a rule's aggregate, carried."""
    return f"window_{index}"


def raw_window(index: int) -> str:
    """The column with the values of a rule's aggregate as they were exported."""
    return f"recorded_{index}"


def carried_window(kind: t.Type, column: str) -> str:
    """A window's values in SQL, carried as `grammar/types.py` says; NULL where that would be too large."""
    match kind:
        case t.Instant():
            return f"epoch_us({column})"
        case t.Number(scale=int(scale)) if 0 < scale < _DIGITS:
            fitting = f"TRY_CAST({column} AS DECIMAL({_DIGITS}, {scale}))"
            # DuckDB gives a product of two narrow decimals no more digits than they have.
            wide = f"CAST({fitting} AS DECIMAL(38, {scale}))"
            return f"CAST({wide} * {10**scale} AS BIGINT)"
        case _:
            return column


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
    query = f"SELECT {asked_all} FROM concerned AS seen"
    (held,) = asked.exported.tables.execute(query).fetchall()
    return found[: next((at for at, each in enumerate(held) if not each), len(found))]


def translation_of(rule: Rule, facts: FactRows) -> Translation:
    """What the rule's names mean among the columns of `seen`."""
    digests = Digests(rule.lets)
    places = {digests.of(history): index for index, history in enumerate(rule.histories)}

    def window(node: History) -> str:
        index = places[digests.of(node)]
        kind = node.type
        if isinstance(kind, t.Number) and kind.scale:
            if kind.scale >= _DIGITS:
                raise NotExactError("decimals of many places")
            both = f"({raw_window(index)} IS NULL) = ({read_window(index)} IS NULL)"
            translation.guards.append(exp.maybe_parse(both, dialect=DIALECT))
        return read_window(index)

    translation = Translation(
        vocabulary=full_vocabulary(),
        facts=facts.names,
        lets=rule.lets,
        window=window,
        text_lists=frozenset(each.name for each in rule.lists if each.type == "string"),
    )
    return translation


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
        _register(tables, "found", ("sequence", "met"), found)
        tables.execute("INSERT INTO rest FROM found")


def _rest_batches(asked: RowsAsked, facts: FactRows, said: Sequence[str]) -> Iterator[list[Entry]]:
    """Payments as entries whose bodies are their facts, what was decided, and what was read."""
    windows = _windows(asked.rule)
    columns = [*facts.columns, *(raw_window(index) for index in range(len(windows)))]
    undecided = " AND ".join(f"NOT coalesce({each}, FALSE)" for each in said) or "TRUE"
    reader = (
        asked.exported.tables.cursor()
        .sql(
            f"SELECT sequence, id, arrived, score, {', '.join(columns)} FROM concerned AS seen"
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
