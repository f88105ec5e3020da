"""Compute the bounds and scale of an operation's result.

A bound is kept only if it fits the digits that a number can have.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from tollkeeper.grammar import types as t

_EXACT = Context(prec=2 * t.MAX_DIGITS + 4)


def _fits(bound: Decimal | None, scale: int) -> Decimal | None:
    if bound is None or bound.copy_abs() >= Decimal(10) ** (t.MAX_DIGITS - scale):
        return None
    return bound


def _number(scale: int, low: Decimal | None, high: Decimal | None) -> t.Number:
    return t.Number(scale, _fits(low, scale), _fits(high, scale))


def _wider(a: t.Number, b: t.Number) -> int | None:
    return None if a.scale is None or b.scale is None else max(a.scale, b.scale)


def total(a: t.Number, b: t.Number) -> t.Number:
    """Return the type of `a + b`."""
    scale = _wider(a, b)
    if scale is None:
        return t.Number(None)
    with localcontext(_EXACT):
        low = None if a.low is None or b.low is None else a.low + b.low
        high = None if a.high is None or b.high is None else a.high + b.high
        return _number(scale, low, high)


def opposite(a: t.Number) -> t.Number:
    """Return the type of `-a`."""
    return t.Number(
        a.scale,
        None if a.high is None else a.high.copy_negate(),
        None if a.low is None else a.low.copy_negate(),
    )


def product(a: t.Number, b: t.Number) -> t.Number | None:
    """Return the type of `a * b`; None if it would need more decimals than a number can have."""
    if a.scale is None or b.scale is None:
        return t.Number(None)
    scale = a.scale + b.scale
    if scale > t.MAX_DIGITS:
        return None
    if a.low is None or a.high is None or b.low is None or b.high is None:
        positive = all(x.low is not None and x.low >= 0 for x in (a, b))
        return t.Number(scale, Decimal(0) if positive else None)
    with localcontext(_EXACT):
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _number(scale, min(corners), max(corners))


def magnitude(a: t.Number) -> t.Number:
    """Return the type of `abs(a)`."""
    high = None if a.low is None or a.high is None else max(a.low.copy_abs(), a.high.copy_abs())
    low = Decimal(0)
    if a.low is not None and a.low > 0:
        low = a.low
    if a.high is not None and a.high < 0:
        low = a.high.copy_negate()
    return t.Number(a.scale, low, high)


def widest(numbers: Iterable[t.Number]) -> t.Number:
    """Return the type of a value that is one of several, as in `coalesce`."""
    result, *others = numbers
    for other in others:
        scale = _wider(result, other)
        if scale is None:
            return t.Number(None)
        low = None if result.low is None or other.low is None else min(result.low, other.low)
        high = None if result.high is None or other.high is None else max(result.high, other.high)
        result = _number(scale, low, high)
    return result


def rounded_range(a: t.Number, decimals: int) -> t.Number:
    """Return the type of `round(a, decimals)`."""
    unit = Decimal(1).scaleb(-decimals)
    with localcontext(_EXACT):
        low = None if a.low is None else a.low.quantize(unit, ROUND_HALF_UP)
        high = None if a.high is None else a.high.quantize(unit, ROUND_HALF_UP)
    return _number(decimals, low, high)
