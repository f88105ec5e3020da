"""Exact arithmetic in SQL: whole numbers with their largest absolute value, and doubles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    NotExactError,
    is_short,
    own_unless,
    sql,
    sql_binary,
    sql_literal,
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
    signed = sql(
        "((abs(:wide) * 2 + :divisor) // :twice) * sign(:value)",
        wide=_wide(operand, doubled),
        divisor=divisor,
        twice=2 * divisor,
        value=operand.value,
    )
    return SqlValue(signed, doubled // (2 * divisor))


def sql_between(operand: SqlValue, low: int, high: int) -> SqlValue:
    """The value, missing when out of range."""
    found = sql(
        "CASE WHEN :value BETWEEN :low AND :high THEN :value END",
        value=operand.value,
        low=low,
        high=high,
    )
    return SqlValue(found, min(operand.largest, max(abs(low), abs(high))))


def sql_double(operand: SqlValue, scale: int) -> exp.Expression:
    """The double nearest to a whole number of this scale."""
    value = operand.value
    near = sql("CAST(:value AS DOUBLE)", value=value)
    if scale:
        near = sql(":near / :unit", near=near, unit=float(10**scale))
    if operand.largest <= EXACT_DOUBLE and scale <= _EXACT_POWER:
        return near
    own = sql("own_double(CAST(:value AS HUGEINT), :scale)", value=value, scale=scale)
    if scale > _EXACT_POWER or not is_short(value):
        return own
    is_exact = sql(
        ":value BETWEEN :low AND :high", value=value, low=-EXACT_DOUBLE, high=EXACT_DOUBLE
    )
    return own_unless(is_exact, own, near)


def sql_finite(value: exp.Expression) -> exp.Expression:
    """The double, missing when it is infinite or NaN."""
    return sql("CASE WHEN isfinite(:value) THEN :value END", value=value)


def _wide(operand: SqlValue, largest: int) -> exp.Expression:
    return operand.value if largest < SMALL else sql("CAST(:value AS HUGEINT)", value=operand.value)
