"""Give `seen` the values of a program's lets as columns, so that each is computed once.

Lets may use earlier lets, and an expression may use a let many times: written out at each use, the SQL
would double from let to let.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections import defaultdict

from sqlglot import exp

from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked, RowsOfProgram
from tollkeeper.engine.offline.columns.sql import NotExactError, sql_of
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue
from tollkeeper.engine.offline.columns.translate import LetColumn, Translation

_MOST_LEVELS = 50
"""The most lets that use each other in a row: each level is a query around the one before."""


def translate_lets(asked: RowsAsked, facts: FactRows, rows: RowsOfProgram) -> Translation:
    """The program's translation, after adding to the view `seen` a column for each let that SQL
    expresses exactly."""
    tables, translation = asked.exported.tables, asked.translation(rows, facts)
    columns: dict[int, LetColumn] = {}
    levels: dict[str, int] = {}
    selected: defaultdict[int, list[str]] = defaultdict(list)
    translation.let_columns = columns
    for index, let in enumerate(rows.program.lets):
        translation.guards.clear()
        try:
            translated = translation.say(let.value)
        except (NotExactError, RecursionError):
            continue
        used = (levels.get(each.name, 0) for each in translated.value.find_all(exp.Column))
        level = 1 + max(used, default=0)
        if level > _MOST_LEVELS:
            continue
        name = f"let_{rows.number}_{index}"
        columns[index] = LetColumn(
            SqlValue(exp.column(name, "seen"), translated.largest), tuple(translation.guards)
        )
        levels[name] = level
        selected[level].append(f"{sql_of(translated.value)} AS {name}")
    if selected:
        # One view for all levels: DuckDB resolves every view below each time it makes another.
        query = f"FROM seen_{rows.number}"
        for _, values in sorted(selected.items()):
            query = f"SELECT seen.*, {', '.join(values)} FROM ({query}) AS seen"
        tables.execute(f"ALTER VIEW seen RENAME TO seen_{rows.number}")
        tables.execute(f"CREATE VIEW seen AS {query}")
    translation.guards.clear()
    return translation
