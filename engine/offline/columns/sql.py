"""Build SQL as syntax: text reaches it only as parsed templates and as literals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import Any

from sqlglot import exp

DIALECT = "duckdb"
SMALL = 2**62
"""Smaller numbers can be added and compared in 64 bits."""
_ADDRESS_BYTES = 16


class NotExactError(Exception):
    """SQL can't express this exactly."""


def sql(template: str, /, **given: Any) -> exp.Expression:
    """The syntax of a template, which has `:name` for each given expression or value."""
    made = _parsed(template).copy()
    for place in [*made.find_all(exp.Placeholder)]:
        value = given[place.name]
        part = value if isinstance(value, exp.Expression) else sql_literal(value)
        # An expression has one parent: from its second place on it is copied.
        place.replace(exp.paren(part, copy=part.parent is not None))
    return made


@cache
def _parsed(template: str) -> exp.Expression:
    return exp.maybe_parse(template, dialect=DIALECT)


def sql_call(function: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=function, expressions=list(arguments))


def sql_of(expression: exp.Expression) -> str:
    """The text of an SQL expression."""
    # Written without a copy, syntax may be rewritten, which gives the same text again.
    return expression.sql(DIALECT, copy=False)


def guarded(guards: Iterable[exp.Expression]) -> str:
    """SQL for whether no row fails a guard."""
    tests = [f"coalesce({sql_of(each)}, TRUE)" for each in guards]
    return f"coalesce(bool_and({' AND '.join(tests) or 'TRUE'}), TRUE)"


def own_call(function: str, *arguments: exp.Expression) -> exp.Expression:
    """A function of `own_functions.py`."""
    return sql_call(f"own_{function}", *arguments)


def own_unless(
    test: exp.Expression, own: exp.Expression, otherwise: exp.Expression
) -> exp.Expression:
    """SQL's own expression for rows where `test` says that it is exact, else our own function.

    For missing values SQL's own is used, which calls no function.
    """
    return sql(
        "CASE WHEN NOT :test THEN :own ELSE :otherwise END", test=test, own=own, otherwise=otherwise
    )


def is_short(value: exp.Expression) -> bool:
    """Whether an expression may be repeated: nested repetitions would double with each level."""
    return isinstance(value, exp.Column)


def sql_binary(
    kind: type[exp.Binary], left: exp.Expression, right: exp.Expression
) -> exp.Expression:
    made: Any = kind(this=exp.paren(left, copy=False), expression=exp.paren(right, copy=False))
    joined: exp.Expression = made
    return joined


def sql_join(kind: type[exp.Binary], values: Iterable[exp.Expression]) -> exp.Expression:
    return reduce(lambda left, right: sql_binary(kind, left, right), values)


def sql_not(value: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.paren(value))


def sql_is_there(value: exp.Expression) -> exp.Expression:
    return sql("NOT :value IS NULL", value=value)


def sql_where(test: exp.Expression, value: exp.Expression) -> exp.Expression:
    """The value, missing where the test isn't met."""
    return exp.Case(ifs=[exp.If(this=test, true=value)])


def is_ascii(text: exp.Expression) -> exp.Expression:
    return sql("strlen(:text) = length(:text)", text=text)


def sql_literal(value: Any) -> exp.Expression:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, str):
        # A text may contain quotes and any other character.
        return sql_call("decode", sql_call("unhex", exp.Literal.string(value.encode().hex())))
    if isinstance(value, float):
        return exp.cast(exp.Literal.string(repr(value)), exp.DataType.Type.DOUBLE, copy=False)
    kind = exp.DataType.Type.BIGINT if abs(value) < SMALL else exp.DataType.Type.INT128
    return exp.cast(exp.Literal.string(str(value)), kind, copy=False)


def sql_texts(values: Iterable[str]) -> exp.Expression:
    return sql_call("list_value", *map(sql_literal, values))


def sql_address(value: int) -> exp.Expression:
    return sql_call("unhex", exp.Literal.string(value.to_bytes(_ADDRESS_BYTES).hex()))


def sql_steps(
    value: exp.Expression, bounds: Sequence[exp.Expression], amounts: Sequence[exp.Expression]
) -> exp.Expression:
    """The amount of the first bound above the value, the last amount if there is none.

    The bounds ascend; the expression is a binary search.
    """
    if not bounds:
        return amounts[0]
    middle = len(bounds) // 2
    below = sql_steps(value, bounds[:middle], amounts[: middle + 1])
    above = sql_steps(value, bounds[middle + 1 :], amounts[middle + 1 :])
    is_below = sql_binary(exp.LT, value.copy(), bounds[middle])
    return exp.Case(ifs=[exp.If(this=is_below, true=below)], default=above)
