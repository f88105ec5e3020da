"""What an aggregate makes of the values in its window, at once or kept up value by value.

A tally is kept for a window of many values; both ways give the same answers (docs/language.md,
"Aggregates"), and the order of the values never matters.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Protocol, TypeAlias

from tollkeeper.engine.velocity.contract import Function
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import MAX_DIGITS, Duration, Number, Type

DECIMAL_LIMIT = 10**MAX_DIGITS
DURATION_LIMIT = 10**18
UNIT_BITS = 1074
"""Every double is a whole multiple of 2 ** -UNIT_BITS."""

Values: TypeAlias = Sequence[Any]
Recount: TypeAlias = Callable[[Values, Type | None], Value | None]


def _is_double(type_: Type | None) -> bool:
    return isinstance(type_, Number) and type_.scale is None


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())


def _rounded(units: int) -> float | None:
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
        # Perhaps only on the way: a sum that fits may pass through one that doesn't.
        return _rounded(sum(map(_units, values)))


def _sum(total: int | float | None, type_: Type | None) -> int | float | None:
    limit = DURATION_LIMIT + 1 if isinstance(type_, Duration) else DECIMAL_LIMIT
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


RECOUNTS: Mapping[Function, Recount] = {
    "any": lambda values, _: _any(values),
    "all": lambda values, _: _all(values),
    "count": lambda values, _: len(values),
    "distinct": lambda values, _: len(set(values)),
    "sum": lambda values, type_: _sum(_total(values, type_), type_),
    "avg": lambda values, type_: _avg(_total(values, type_), len(values), type_),
    "min": lambda values, _: min(values, default=None),
    "max": lambda values, _: max(values, default=None),
}


def recounting(function: Function, type_: Type | None) -> Callable[[Values], Value | None]:
    """`RECOUNTS` of one function and type."""
    if function == "distinct":
        return lambda values: len(set(values))
    if function == "sum" and isinstance(type_, Number) and type_.scale is not None:
        return _decimal_sum
    recount = RECOUNTS[function]
    return lambda values: recount(values, type_)


def _decimal_sum(values: Values) -> int | None:
    total = sum(values)
    return total if -DECIMAL_LIMIT < total < DECIMAL_LIMIT else None


class Tally(Protocol):
    """An aggregate kept up while values enter and leave, at a cost that hardly grows."""

    def add(self, value: Any) -> None: ...

    def remove(self, value: Any) -> None:
        """Takes out one value that was added."""
        ...

    def answer(self, function: Function) -> Value | None: ...


class Bag:
    """How often each value is there: `distinct`, `any`, `all`."""

    __slots__ = ("counts",)

    def __init__(self, values: Iterable[Any]) -> None:
        self.counts: dict[Any, int] = dict(Counter(values))

    def add(self, value: Any) -> None:
        self.counts[value] = self.counts.get(value, 0) + 1

    def remove(self, value: Any) -> None:
        count = self.counts[value]
        if count == 1:
            del self.counts[value]
        else:
            self.counts[value] = count - 1

    def answer(self, function: Function) -> Value | None:
        if function == "distinct":
            return len(self.counts)
        return _any(self.counts) if function == "any" else _all(self.counts)


class Ordered:
    """The values in order: `min`, `max`."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = sorted(values)

    def add(self, value: Any) -> None:
        insort(self.values, value)

    def remove(self, value: Any) -> None:
        del self.values[bisect_left(self.values, value)]

    def answer(self, function: Function) -> Value | None:
        if not self.values:
            return None
        found: Value = self.values[0 if function == "min" else -1]
        return found


class Total:
    """The exact sum and the count: `sum`, `avg`; doubles are summed in units."""

    __slots__ = ("count", "total", "type")

    def __init__(self, values: Values, type_: Type | None) -> None:
        self.type = type_
        self.count = len(values)
        self.total: int = sum(map(_units, values)) if _is_double(type_) else sum(values)

    def add(self, value: Any) -> None:
        self.count += 1
        self.total += _units(value) if type(value) is float else value

    def remove(self, value: Any) -> None:
        self.count -= 1
        self.total -= _units(value) if type(value) is float else value

    def answer(self, function: Function) -> Value | None:
        total = _rounded(self.total) if _is_double(self.type) else self.total
        if function == "sum":
            return _sum(total, self.type)
        return _avg(total, self.count, self.type)


KINDS: Mapping[Function, str] = {
    "any": "bag",
    "all": "bag",
    "distinct": "bag",
    "min": "ordered",
    "max": "ordered",
    "sum": "total",
    "avg": "total",
}
"""Functions of one kind are answered by one tally; `count` needs none."""


def tally(kind: str, values: Values, type_: Type | None) -> Tally:
    """A tally of the kind that `KINDS` names, holding `values`."""
    if kind == "bag":
        return Bag(values)
    return Ordered(values) if kind == "ordered" else Total(values, type_)
