"""Exact arithmetic in SQL: whole numbers with their largest absolute value, and doubles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    NotExactError,
    is_short,
    own_call,
    own_unless,
    sql_binary,
    sql_call,
    sql_literal,
    sql_where,
)
from tollkeeper.engine.programs.compile.functions import LIMIT

EXACT_DOUBLE = 2**53
"""Whole numbers up to this are exact as doubles."""
_EXACT_POWER = 22
"""Powers of ten up to this exponent are exact as doubles."""
OPERATIONS: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A value in SQL; `largest` is the largest absolute value of a number represented as an
    integer."""

    value: exp.Expression
    largest: int = 0


def sql_number(value: int) -> SqlValue:
    require_small(abs(value))
    return SqlValue(sql_literal(value), abs(value))


def require_small(largest: int) -> None:
    if largest >= LIMIT:
        raise NotExactError("more digits than SQL carries")


def sql_product(left: SqlValue, right: SqlValue) -> SqlValue:
    largest = left.largest * right.largest
    require_small(largest)
    most = max(largest, left.largest, right.largest)
    return SqlValue(sql_binary(exp.Mul, _wide(left, most), _wide(right, most)), largest)


def sql_sum(operator: str, left: SqlValue, right: SqlValue) -> SqlValue:
    """The sum, or the difference."""
    largest = left.largest + right.largest
    require_small(largest)
    made = sql_binary(OPERATIONS[operator], _wide(left, largest), _wide(right, largest))
    return SqlValue(made, largest)


def sql_divided(operand: SqlValue, divisor: int) -> SqlValue:
    """The quotient of a whole number and a positive integer, rounded half away from zero."""
    doubled = 2 * operand.largest + divisor
    require_small(doubled)
    size = sql_binary(
        exp.Add,
        sql_binary(exp.Mul, exp.Abs(this=_wide(operand, doubled)), sql_literal(2)),
        sql_literal(divisor),
    )
    whole = sql_binary(exp.IntDiv, size, sql_literal(2 * divisor))
    signed = sql_binary(exp.Mul, whole, sql_call("sign", operand.value.copy()))
    return SqlValue(signed, doubled // (2 * divisor))


def sql_between(operand: SqlValue, low: int, high: int) -> SqlValue:
    """The value, missing when out of range."""
    within = exp.Between(
        this=exp.paren(operand.value), low=sql_literal(low), high=sql_literal(high)
    )
    found = sql_where(within, operand.value.copy())
    return SqlValue(found, min(operand.largest, max(abs(low), abs(high))))


def sql_double(operand: SqlValue, scale: int) -> exp.Expression:
    """The double nearest to a whole number of this scale."""
    value = exp.cast(exp.paren(operand.value), "DOUBLE")
    near = sql_binary(exp.Div, value, sql_literal(float(10**scale))) if scale else value
    if operand.largest <= EXACT_DOUBLE and scale <= _EXACT_POWER:
        return near
    own = own_call(
        "double", exp.cast(exp.paren(operand.value.copy()), "HUGEINT"), sql_literal(scale)
    )
    if scale > _EXACT_POWER or not is_short(operand.value):
        return own
    is_exact = exp.Between(
        this=exp.paren(operand.value.copy()),
        low=sql_literal(-EXACT_DOUBLE),
        high=sql_literal(EXACT_DOUBLE),
    )
    return own_unless(is_exact, own, near)


def sql_finite(value: exp.Expression) -> exp.Expression:
    """The double, missing when it is infinite or NaN."""
    return sql_where(sql_call("isfinite", value.copy()), value)


def _wide(operand: SqlValue, largest: int) -> exp.Expression:
    return operand.value if largest < SMALL else exp.cast(exp.paren(operand.value), "HUGEINT")
