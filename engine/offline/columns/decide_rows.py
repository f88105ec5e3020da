"""Decide the rows of an export by rules: in SQL as far as possible, then by the compiled rule.

Conditions are evaluated in order. SQL decides up to the first one that it can't express exactly;
the remaining rows are decided by the compiled rule in batches of Arrow.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tollkeeper.engine.offline.columns.compiled_rows import compiled_decisions
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.let_columns import translate_lets
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked, RowsOfProgram
from tollkeeper.engine.offline.columns.seen import register
from tollkeeper.engine.offline.columns.sql import NotExactError, guarded, sql_of
from tollkeeper.grammar.program import Rule

_NO_RULE = -1


def decide_rows(asked: RowsAsked, facts: FactRows) -> None:
    """Make the view `decided`: `seen` with `met`, the row of the table `conditions` that decides."""
    tables = asked.exported.tables
    tables.execute("CREATE TABLE rest (sequence BIGINT, met BIGINT)")
    named: list[tuple[Any, ...]] = [(_NO_RULE, None, None, None)]
    arms = []
    for rows in asked.rules:
        rule, first = rows.program, len(named)
        assert isinstance(rule, Rule)
        said = _sayable(asked, facts, rows)
        if len(said) < len(rule.conditions):
            _decide_rest(asked, facts, rows, said, first)
        for each in rule.conditions:
            named.append((len(named), rule.name, each.name, each.action))
        otherwise = len(named)
        named.append((otherwise, rule.name, None, rule.otherwise))
        met = " ".join(f"WHEN {each} THEN {place}" for place, each in enumerate(said, first))
        arms.append((rows.holds, f"CASE {met} ELSE {otherwise} END" if said else str(otherwise)))
    register(tables, "conditions", ("met", "rule", "name", "action"), named)
    tables.execute(
        f"CREATE VIEW decided AS SELECT seen.*, coalesce(rest.met, {_by_rule(arms)}) AS met"
        " FROM seen LEFT JOIN rest USING (sequence)"
    )


def _by_rule(arms: Sequence[tuple[str, str]]) -> str:
    match arms:
        case [("TRUE", met)]:
            return met
        case []:
            return str(_NO_RULE)
        case _:
            each = " ".join(f"WHEN {holds} THEN {met}" for holds, met in arms)
            return f"CASE {each} ELSE {_NO_RULE} END"


def _sayable(asked: RowsAsked, facts: FactRows, rows: RowsOfProgram) -> list[str]:
    """The rule's conditions in SQL, up to the first that SQL can't express exactly for all
    payments."""
    tables, rule, found, guards = asked.exported.tables, rows.program, [], []
    assert isinstance(rule, Rule)
    translation = translate_lets(asked, facts, rows)
    for condition in rule.conditions:
        translation.guards.clear()
        try:
            text = sql_of(translation.test(condition.when))
        except (NotExactError, RecursionError):
            break
        guards.append(guarded(translation.guards))
        found.append(text)
    if not found:
        return found
    query = f"SELECT {', '.join(guards)} FROM seen WHERE {rows.holds}"
    (held,) = tables.execute(query).fetchall()
    return found[: next((at for at, each in enumerate(held) if not each), len(found))]


def _decide_rest(
    asked: RowsAsked, facts: FactRows, rows: RowsOfProgram, said: Sequence[str], first: int
) -> None:
    """Fill `rest` with the compiled rule's decisions on the payments that meet none of the
    conditions `said`."""
    tables, rule = asked.exported.tables, rows.program
    assert isinstance(rule, Rule)
    undecided = [rows.holds, *(f"NOT coalesce({each}, FALSE)" for each in said)]
    places: dict[str | None, int] = {None: first + len(rule.conditions)}
    places |= {each.name: place for place, each in enumerate(rule.conditions, first)}
    for batch in compiled_decisions(asked, facts, rows, " AND ".join(undecided)):
        found = [
            (sequence, places[decision.rule.condition if decision.rule else None])
            for sequence, decision in batch
        ]
        register(tables, "found", ("sequence", "met"), found)
        tables.execute("INSERT INTO rest FROM found")
