"""The payments that the programs decide, with their facts and windows, as views over an export."""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked, settings_of
from tollkeeper.engine.offline.columns.sql import DIALECT
from tollkeeper.engine.offline.columns.window_values import (
    carried_window,
    raw_window,
    read_window,
    recorded_window,
)
from tollkeeper.engine.programs.decider import action_at
from tollkeeper.grammar.program import Scorecard

_SCORES = range(101)


def make_concerned(asked: RowsAsked) -> FactRows:
    """Make the view `concerned`: the payments that the program decides, with the facts that it
    reads."""
    tables = asked.exported.tables
    in_force = _make_situations(asked)
    facts = FactRows(asked.read, "payment")
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
    for each in asked.programs:
        for index, window in enumerate(each.windows):
            recorded = f"payment.{window.name}" if window.name in there else "NULL"
            columns[recorded_window(index, each.number)] = recorded
    selected = ", ".join(f"{column} AS {name}" for name, column in columns.items())
    tables.execute(
        f"CREATE VIEW concerned AS SELECT {selected} FROM payments AS payment"
        f" JOIN situations AS situation ON situation.number = {in_force}"
        f" WHERE epoch_us(payment.arrived) BETWEEN {asked.since} AND {asked.until}"
        f" AND {_concerns(asked)}"
    )
    return facts


def lacking_windows(asked: RowsAsked) -> tuple[int, ...]:
    """The indexes of the program's aggregates that some concerned payment's decision did not read
    exactly."""
    columns = [each.name for each in asked.tried.windows]
    if not columns:
        return ()
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
    recorded = {*columns}
    for rule, version, scorecard, begun, lost in deciders:
        begins = shipped[begun - 1] if begun else None
        recorded &= {
            column
            for (kind, name, number, since), found in readers.items()
            if (kind, name, number) == ("rule", rule, version)
            or (kind == "scorecard" and number == scorecard and (number or since == begins))
            for column in found
        }
        recorded -= {*(lost or ())}
    return tuple(index for index, each in enumerate(columns) if each not in recorded)


def make_seen(asked: RowsAsked, counted: Mapping[int, str]) -> None:
    """Make the view `seen`: the concerned payments with the aggregates that programs read.

    `counted` are tables with counted values, by the index of the candidate's aggregate.
    """
    raw, carried = [], []
    for each in asked.programs:
        own = counted if each is asked.tried else {}
        for index, window in enumerate(each.windows):
            name = raw_window(index, each.number)
            column = f"{own[index]}.{name}" if index in own else recorded_window(index, each.number)
            raw.append(f"{column} AS {name}")
            read = carried_window(window.type, column)
            carried.append(f"{read} AS {read_window(index, each.number)}")
    joined = " ".join(f"LEFT JOIN {table} USING (sequence)" for table in {*counted.values()})
    selected = ", ".join(["concerned.*", *raw, *carried])
    asked.exported.tables.execute(f"CREATE VIEW seen AS SELECT {selected} FROM concerned {joined}")


def _make_situations(asked: RowsAsked) -> str:
    """Make tables of the settings and of the action for each score under them; returns SQL for the
    number of a payment's settings.

    Not by a join on time, which would sort all payments.
    """
    settings = settings_of(asked.exported)
    register(
        asked.exported.tables,
        "situations",
        ("number", "default_rule"),
        [(number, each.default_rule) for number, (_, each) in enumerate(settings)],
    )
    register(
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


def _concerns(asked: RowsAsked) -> str:
    if isinstance(asked.tried.program, Scorecard):
        return "payment.decision.score IS NOT NULL"
    if asked.everyone:
        return "payment.analyze.bot_behaviour"
    wanted = (
        "coalesce(payment.analyze.rule.name,"
        " CASE WHEN payment.analyze.bot_behaviour THEN situation.default_rule END)"
    )
    return f"{wanted} = {exp.Literal.string(asked.tried.program.name).sql(DIALECT)}"


def register(
    tables: Any, name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Make a table of rows, with columns of the declared number types, else texts."""
    numbers = {"met", "sequence", "number", "situation", "score"}
    values = list(map(list, zip(*rows, strict=True))) or [[] for _ in columns]
    kinds = ("BIGINT" if each in numbers else "VARCHAR" for each in columns)
    made = (f"unnest(?::{kind}[]) AS {each}" for each, kind in zip(columns, kinds, strict=True))
    tables.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {', '.join(made)}", values)
