"""Arithmetic and choices among numbers in SQL, on translated operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    sql,
    sql_binary,
    sql_is_there,
    sql_literal,
    sql_steps,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_numbers import (
    OPERATIONS,
    SqlValue,
    sql_between,
    sql_divided,
    sql_double,
    sql_finite,
    sql_product,
    sql_sum,
)
from tollkeeper.engine.programs.compile.functions import (
    DURATION_LIMIT,
    FIRST_INSTANT,
    LAST_INSTANT,
    LIMIT,
)
from tollkeeper.engine.programs.compile.numbers import scale_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t


def is_number(node: p.Expression) -> bool:
    return isinstance(node.type, t.Number)


def sql_at_scale(operand: SqlValue, scale: int | None, wanted: int | None) -> SqlValue:
    """A number at another scale, no smaller than its own; None is a double."""
    if scale == wanted or scale is None:
        return operand
    if wanted is None:
        return SqlValue(sql_double(operand, scale))
    factor = 10 ** (wanted - scale)
    return sql_product(operand, SqlValue(sql_literal(factor), factor))


def sql_at_one_scale(
    nodes: Sequence[p.Expression], operands: Sequence[SqlValue], scale: int | None
) -> list[SqlValue]:
    return [
        sql_at_scale(each, scale_of(node), scale)
        for node, each in zip(nodes, operands, strict=True)
    ]


def sql_arithmetic(node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
    if node.operator == "/":
        return _quotient(node, left, right)
    match node.type:
        case t.Number(scale=None):
            values = sql_at_one_scale((node.left, node.right), (left, right), None)
            operation = OPERATIONS[node.operator]
            return SqlValue(sql_finite(sql_binary(operation, *(each.value for each in values))))
        case t.Number(scale=scale):
            if node.operator == "*":
                return sql_product(left, right)
            values = sql_at_one_scale((node.left, node.right), (left, right), scale)
            return sql_sum(node.operator, *values)
        case t.Instant():
            return sql_between(sql_sum(node.operator, left, right), FIRST_INSTANT, LAST_INSTANT)
        case t.Duration() if node.operator != "*":
            whole = sql_sum(node.operator, left, right)
            if isinstance(node.left.type, t.Instant):
                return whole
            return _duration(whole)
        case _:
            return _duration_times(node, left, right)


def _quotient(node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
    scales = scale_of(node.left), scale_of(node.right)
    dividend, divisor = sql_at_scale(left, scales[0], None), sql_at_scale(right, scales[1], None)
    if not is_number(node.left):
        dividend, divisor = SqlValue(sql_double(left, 0)), SqlValue(sql_double(right, 0))
    found = sql(
        "CASE WHEN :divisor <> 0 THEN :dividend / :divisor END",
        dividend=dividend.value,
        divisor=divisor.value,
    )
    return SqlValue(found if None not in scales else sql_finite(found))


def _duration_times(node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
    scale = scale_of(node.left if is_number(node.left) else node.right)
    if scale is not None:
        product = sql_product(left, right)
        return _duration(sql_divided(product, 10**scale) if scale else product)
    doubles = (
        each.value if is_number(side) else sql_double(each, 0)
        for side, each in ((node.left, left), (node.right, right))
    )
    product_of_doubles = SqlValue(sql_finite(sql_binary(exp.Mul, *doubles)))
    return _duration(rounded_double(product_of_doubles, 0))


def _duration(operand: SqlValue) -> SqlValue:
    return sql_between(operand, -DURATION_LIMIT, DURATION_LIMIT)


def rounded_double(operand: SqlValue, decimals: int) -> SqlValue:
    rounded = sql("own_rounded(:value, :decimals)", value=operand.value, decimals=decimals)
    return SqlValue(rounded, LIMIT - 1)


def sql_rounded(node: p.Call, operand: SqlValue) -> SqlValue:
    """`round(value, n)`, of the scale n of its type."""
    source, wanted = scale_of(node.arguments[0]), scale_of(node)
    assert wanted is not None
    if source is None:
        return rounded_double(operand, wanted)
    if source <= wanted:
        return sql_at_scale(operand, source, wanted)
    return sql_divided(operand, 10 ** (source - wanted))


def sql_curve(node: p.Curve, operands: Sequence[SqlValue], scale: int | None) -> SqlValue:
    """The amount of a curve's step; `operands` are the translated value and bounds."""
    value, *bounds = (
        each.value for each in sql_at_one_scale((node.value, *node.bounds), operands, scale)
    )
    amounts = [sql_literal(nearest_double(each)) for each in node.amounts]
    found = sql_where(sql_is_there(value.copy()), sql_steps(value, bounds, amounts))
    if node.absent is None:
        return SqlValue(found)
    absent = nearest_double(node.absent)
    return SqlValue(sql("coalesce(:found, :absent)", found=found, absent=absent))


def nearest_double(node: p.Constant) -> float:
    """A constant number as the nearest double."""
    scale, value = scale_of(node), node.value
    assert not isinstance(value, str)
    return float(value) if scale is None else int(value) / 10**scale


def sql_choice(
    node: p.Call,
    operands: Sequence[SqlValue],
    choose: Callable[[Sequence[exp.Expression]], exp.Expression],
) -> SqlValue:
    """A choice among the arguments, numbers at the scale of the result."""
    if not is_number(node):
        return SqlValue(choose([each.value for each in operands]), SMALL)
    scaled = sql_at_one_scale(node.arguments, operands, scale_of(node))
    return SqlValue(choose([each.value for each in scaled]), max(each.largest for each in scaled))
