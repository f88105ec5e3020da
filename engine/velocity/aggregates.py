"""The values of aggregates, computed from all values in a window or from partial aggregates.

Both ways give the same result (docs/language.md, "Aggregates"), whatever the order of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import fsum
from typing import Any, TypeAlias

from tollkeeper.engine.velocity.tree import PartialAggregate
from tollkeeper.grammar.program import AggregateFunction, Value
from tollkeeper.grammar.types import MAX_DIGITS, Duration, Number, Type

DECIMAL_LIMIT = 10**MAX_DIGITS
_DURATION_LIMIT = 10**18
UNIT_BITS = 1074
"""Every double is a whole multiple of 2 ** -UNIT_BITS."""

Values: TypeAlias = Sequence[Any]
Recount: TypeAlias = Callable[[Values, Type | None], Value | None]


def _is_double(type_: Type | None) -> bool:
    return isinstance(type_, Number) and type_.scale is None


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())


def _from_units(units: int) -> float | None:
    try:
        return units / (1 << UNIT_BITS)
    except OverflowError:
        return None


def _total(values: Values, type_: Type | None) -> int | float | None:
    if not _is_double(type_):
        return sum(values)
    try:
        return fsum(values)
    except OverflowError:
        # An intermediate sum overflowed, though the total may be in range: sum exactly.
        return _from_units(sum(map(_units, values)))


def _sum(total: int | float | None, type_: Type | None) -> int | float | None:
    limit = _DURATION_LIMIT + 1 if isinstance(type_, Duration) else DECIMAL_LIMIT
    return None if isinstance(total, int) and abs(total) >= limit else total


def _avg(total: int | float | None, count: int, type_: Type | None) -> float | None:
    if not count or total is None:
        return None
    scale = type_.scale if isinstance(type_, Number) else None
    return float(total / (count * 10 ** (scale or 0)))


def _any(values: Collection[Any]) -> bool | None:
    return True if True in values else None if None in values else False


def _all(values: Collection[Any]) -> bool | None:
    return False if False in values else None if None in values else True


RECOUNTS: Mapping[AggregateFunction, Recount] = {
    "any": lambda values, _: _any(values),
    "all": lambda values, _: _all(values),
    "count": lambda values, _: len(values),
    "distinct": lambda values, _: len(set(values)),
    "sum": lambda values, type_: _sum(_total(values, type_), type_),
    "avg": lambda values, type_: _avg(_total(values, type_), len(values), type_),
    "min": lambda values, _: min(values, default=None),
    "max": lambda values, _: max(values, default=None),
}


def recounting(function: AggregateFunction, type_: Type | None) -> Callable[[Values], Value | None]:
    """The function of `RECOUNTS` for one aggregate and type."""
    if function == "distinct":
        return lambda values: len(set(values))
    if function == "sum" and isinstance(type_, Number) and type_.scale is not None:
        return _decimal_sum
    recount = RECOUNTS[function]
    return lambda values: recount(values, type_)


def _decimal_sum(values: Values) -> int | None:
    total = sum(values)
    return total if -DECIMAL_LIMIT < total < DECIMAL_LIMIT else None


def fold_values(function: AggregateFunction, type_: Type | None) -> PartialAggregate:
    """The partial aggregate of `function`; for a sum or average, `aggregate_value` makes the value of
    the total."""
    if function in ("sum", "avg"):
        return UNITS if _is_double(type_) else TOTAL
    return FOLDS[function]


TOTAL = PartialAggregate("total", sum, sum)
UNITS = PartialAggregate("total", lambda values: sum(map(_units, values)), sum)
FOLDS: Mapping[AggregateFunction, PartialAggregate] = {
    "any": PartialAggregate("any", _any, _any),
    "all": PartialAggregate("all", _all, _all),
    "min": PartialAggregate("min", min, min),
    "max": PartialAggregate("max", max, max),
}


def aggregate_value(
    function: AggregateFunction, total: int, count: int, type_: Type | None
) -> Value | None:
    """`sum` or `avg` from the exact total of `count` values; a total of doubles is in units of
    2 ** -UNIT_BITS."""
    whole = _from_units(total) if _is_double(type_) else total
    return _sum(whole, type_) if function == "sum" else _avg(whole, count, type_)
