"""Aggregates over a payment's transactions in SQL, as list functions."""

from __future__ import annotations

from sqlglot import exp

from tollkeeper.engine.intake.payment import MAX_TRANSACTIONS
from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    NotExactError,
    own_call,
    sql,
    sql_call,
    sql_literal,
)
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue
from tollkeeper.engine.programs.compile.numbers import scale_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

ELEMENT = "element"
"""The name of a transaction in SQL lambdas."""


def of_each(elements: exp.Expression, expression: exp.Expression) -> exp.Expression:
    """The list of an expression's values for each element."""
    return sql_call("list_transform", elements, _lambda(expression))


def _lambda(expression: exp.Expression) -> exp.Expression:
    return exp.Lambda(this=expression, expressions=[exp.to_identifier(ELEMENT)])


def sql_fold(
    node: p.Fold, elements: exp.Expression, where: exp.Expression | None, value: SqlValue | None
) -> SqlValue:
    """The aggregate; `where` and `value` are translated for an element."""
    if node.function in ("any", "all"):
        met = of_each(elements, exp.true() if where is None else where)
        return SqlValue(_fold_booleans(met, node.function == "any"))
    kept = elements if where is None else sql_call("list_filter", elements, _lambda(where))
    if value is None:
        return SqlValue(sql_call("len", kept), MAX_TRANSACTIONS)
    assert node.value is not None
    expression = value.value
    if _is_double(node.value):
        # 0.0 and -0.0 are one number.
        expression = sql(":value + :zero", value=expression, zero=0.0)
    return _of_values(node, node.value, SqlValue(of_each(kept, expression), value.largest))


def _fold_booleans(met: exp.Expression, decisive: bool) -> exp.Expression:
    """Whether any value is `decisive`; missing if none is and one is missing."""
    return sql(
        "CASE WHEN list_contains(:met, :decisive) THEN :decisive"
        " WHEN list_count(:met) = len(:met) THEN NOT :decisive END",
        met=met,
        decisive=decisive,
    )


def _of_values(node: p.Fold, of: p.Expression, values: SqlValue) -> SqlValue:
    match node.function:
        case "distinct":
            # DuckDB's counts are unsigned.
            unique = sql("CAST(list_unique(:numbers) AS BIGINT)", numbers=values.value)
            return SqlValue(unique, MAX_TRANSACTIONS)
        case "min" | "max":
            return SqlValue(sql_call(f"list_{node.function}", values.value), values.largest)
        case "sum" if _is_double(of):
            return SqlValue(own_call("total", values.value))
        case "avg" if _is_double(of):
            mean = "own_total(:numbers) / list_count(:numbers)"
            return SqlValue(
                sql(f"CASE WHEN list_count(:numbers) > 0 THEN {mean} END", numbers=values.value)
            )
        case _ if values.largest >= SMALL:
            raise NotExactError("large numbers of transactions")
        case "sum":
            whole = sql("coalesce(list_sum(:numbers), :none)", numbers=values.value, none=0)
            return SqlValue(whole, MAX_TRANSACTIONS * values.largest)
        case _:
            integers = exp.cast(values.value, "BIGINT[]")
            return SqlValue(own_call("mean", integers, sql_literal(scale_of(of))))


def _is_double(node: p.Expression) -> bool:
    return isinstance(node.type, t.Number) and node.type.scale is None
