"""Encode numbers and durations: decimals exactly, doubles as reals with a rounding error.

The solver knows of an operation on doubles only how far its result may be from the exact one;
`search.py` corrects assignments by the engine's own operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import z3

from tollkeeper.engine.offline.prove.encoder import Compute, Encoder, bounds_of
from tollkeeper.engine.offline.prove.terms import (
    Formula,
    SmtTerm,
    UnsayableError,
    all_of,
    at_one_scale,
    decimal_places,
    real,
    scale_term,
)
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import calculate, double, lift, limit_to_type
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_EPSILON = z3.Q(1, 2**51)
"""An upper bound of an operation's relative error, on operands that were rounded once each."""
_TINY = z3.Q(1, 2**1000)
_SURELY_FINITE = z3.Q(2**1000, 1)


def encode_arithmetic(
    encoder: Encoder, node: p.Arithmetic, left: SmtTerm, right: SmtTerm
) -> SmtTerm:
    """Raises `UnsayableError`."""
    kind = node.type
    if isinstance(kind, t.Number) and kind.scale is None:
        return _of_doubles(encoder, node, left, right)
    if node.operator == "*" and isinstance(kind, t.Duration):
        return _duration_times(left, right, kind)
    if node.operator == "*":
        value = left.value * right.value
    else:
        a, b = at_one_scale(left, right)
        value = a + b if node.operator == "+" else a - b
    return limit_term(SmtTerm(z3.And(left.there, right.there), value, kind))


def encode_share(operator: str, dividend: SmtTerm, divisor: SmtTerm, bound: p.Constant) -> SmtTerm:
    """Compare a quotient of two counts with a constant, without dividing.

    The quotient of integers below 2 ** 53 is never exactly halfway between two doubles, so it
    rounds to `c` or more exactly if it is above the midpoint of `c` and the double before it.
    """
    assert isinstance(bound.type, t.Number)
    constant = float(double(lift(bound.value, bound.type)))

    def at_least(least: float) -> Formula:
        middle = (Fraction(least) + Fraction(nextafter(least, -inf))) / 2
        return dividend.value * middle.denominator >= divisor.value * middle.numerator

    reaches, exceeds = at_least(constant), at_least(nextafter(constant, inf))
    met = {
        ">=": reaches,
        "<": z3.Not(reaches),
        ">": exceeds,
        "<=": z3.Not(exceeds),
        "==": z3.And(reaches, z3.Not(exceeds)),
        "!=": z3.Or(z3.Not(reaches), exceeds),
    }
    there = z3.And(dividend.there, divisor.there, divisor.value != 0)
    return SmtTerm(there, met[operator], t.Boolean())


def encode_double(encoder: Encoder, term: SmtTerm) -> SmtTerm:
    """A number as a double: exact for small whole numbers, else within its rounding."""
    kind = term.type
    if not isinstance(kind, t.Number | t.Duration):
        return term
    if isinstance(kind, t.Number) and kind.scale is None:
        return term
    scale = decimal_places(kind)
    if z3.is_int_value(term.value):
        constant = double(lift(term.value.as_long(), t.Number(scale)))
        return SmtTerm(term.there, real(constant), t.Number(None))
    exact = z3.ToReal(term.value) / 10**scale
    return _rounded_double(encoder, f"double{scale}", [term], exact, double)


def encode_round(encoder: Encoder, given: SmtTerm, kind: t.Number) -> SmtTerm:
    """Rounded half away from zero, to the decimal places of `kind`."""
    scale = kind.scale or 0
    own = given.type
    assert isinstance(own, t.Number)
    if own.scale is None:
        found = encoder.apply(f"round{scale}", [given], kind, _round_double(kind))
        exact = given.value * 10**scale
        rounded = 2 * z3.ToReal(found.value)
        near = z3.And(rounded >= 2 * exact - 1, rounded <= 2 * exact + 1)
        encoder.assume(z3.Implies(found.there, near))
        return found
    if own.scale <= scale:
        value = scale_term(given.value, scale - own.scale)
    else:
        value = _divide(given.value, 10 ** (own.scale - scale))
    return limit_term(SmtTerm(given.there, value, kind))


def limit_term(term: SmtTerm) -> SmtTerm:
    """Missing where the type cannot carry the value."""
    kind = term.type
    if isinstance(kind, t.Number) and kind.scale is not None:
        low, high = kind.low, kind.high
        limit = Decimal(functions.LIMIT).scaleb(-kind.scale)
        if low is not None and high is not None and -limit < low <= high < limit:
            return term
        wide = z3.And(term.value > -functions.LIMIT, term.value < functions.LIMIT)
        return SmtTerm(z3.And(term.there, wide), term.value, kind)
    inside = bounds_of(term)
    return SmtTerm(all_of([term.there, *inside]), term.value, kind)


def _of_doubles(encoder: Encoder, node: p.Arithmetic, left: SmtTerm, right: SmtTerm) -> SmtTerm:
    a, b = encode_double(encoder, left), encode_double(encoder, right)
    match node.operator:
        case "+":
            exact = a.value + b.value
        case "-":
            exact = a.value - b.value
        case "*":
            exact = a.value * b.value
        case "/":
            exact = a.value / b.value
            a = SmtTerm(all_of([a.there, b.there, b.value != 0]), a.value, a.type)
    return _rounded_double(
        encoder,
        f"double{node.operator}",
        [a, b],
        exact,
        lambda one, other: limit_to_type(calculate(node, one, other), node.type),
    )


def _rounded_double(
    encoder: Encoder, name: str, arguments: Sequence[SmtTerm], exact: Formula, compute: Compute
) -> SmtTerm:
    """A double within the rounding error of the exact value."""
    found = encoder.apply(name, arguments, t.Number(None), compute)
    size = z3.If(exact >= 0, exact, -exact)
    error = _EPSILON * size + _TINY
    near = z3.And(found.value >= exact - error, found.value <= exact + error)
    there = z3.Implies(all_of([each.there for each in arguments]), found.there)
    encoder.assume(z3.Implies(size < _SURELY_FINITE, z3.And(near, there)))
    encoder.hint(found.value == exact)
    return found


def _duration_times(left: SmtTerm, right: SmtTerm, kind: t.Duration) -> SmtTerm:
    span, factor = (left, right) if isinstance(left.type, t.Duration) else (right, left)
    if not isinstance(factor.type, t.Number) or factor.type.scale is None:
        raise UnsayableError("a duration times a double")
    value = _divide(span.value * factor.value, 10**factor.type.scale)
    return limit_term(SmtTerm(z3.And(left.there, right.there), value, kind))


def _divide(dividend: Formula, divisor: int) -> Formula:
    """Rounded half away from zero."""
    size = z3.If(dividend >= 0, dividend, -dividend)
    rounded = (2 * size + divisor) / (2 * divisor)
    return z3.If(dividend >= 0, rounded, -rounded)


def _round_double(kind: t.Number) -> Compute:
    def compute(value: float) -> Any:
        scale = kind.scale or 0
        return limit_to_type(lift(functions.rounded(value, scale), kind), kind)

    return compute
