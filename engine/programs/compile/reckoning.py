"""Arithmetic of the interpreter: numbers, instants and durations.

Decimals are `Decimal`s, rounded only where a rule asks for it; doubles are `float`s.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

from tollkeeper.engine.programs.compile import functions
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

# More digits than any decimal or double here has: only `ROUNDING` rounds.
EXACT = Context(prec=2000, traps=[Inexact])
ROUNDING = Context(prec=2000, rounding=ROUND_HALF_UP)
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def carry(value: Any, kind: t.Type) -> Any:
    """A value of `evaluate` in the representation of `types.py`."""
    if isinstance(value, Decimal) and isinstance(kind, t.Number) and kind.scale is not None:
        return int(value.scaleb(kind.scale, EXACT))
    return value


def lift(value: Any, kind: t.Type) -> Any:
    """A value in the representation of `types.py` as one of `evaluate`."""
    if value is not None and isinstance(kind, t.Number) and kind.scale is not None:
        return Decimal(value).scaleb(-kind.scale, EXACT)
    return value


def compare(sign: str, left: Any, right: Any) -> bool | None:
    """A comparison, missing when one side is."""
    if left is None or right is None:
        return None
    left, right = unify_numbers((left, right))
    return _ORDER[sign](left, right)


def unify_numbers(values: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers of one kind: all doubles when one of them is."""
    if any(isinstance(value, float) for value in values):
        return tuple(map(double, values))
    return tuple(values)


def double(value: Decimal | float) -> float:
    """A decimal as the nearest double; a duration's whole number as well."""
    fraction = Fraction(value)
    return value if isinstance(value, float) else fraction.numerator / fraction.denominator


def limit_to_type(value: Any, kind: t.Type) -> Any:
    """The value, missing when its type can't represent it."""
    if value is None:
        return None
    match kind:
        case t.Number(scale=None):
            return value if math.isfinite(value) else None
        case t.Number(scale=int(scale)):
            return value if abs(value.scaleb(scale)) < functions.LIMIT else None
        case t.Duration():
            return value if abs(value) <= functions.DURATION_LIMIT else None
        case t.Instant():
            return value if functions.FIRST_INSTANT <= value <= functions.LAST_INSTANT else None
        case _:
            return value


def calculate(node: p.Arithmetic, left: Any, right: Any) -> Any:
    """The sum, difference, product or quotient, without range checks."""
    if node.operator == "/":
        return None if right == 0 else double(left) / double(right)
    if node.operator == "*" and isinstance(node.type, t.Duration):
        return _duration_times(left, right)
    left, right = unify_numbers((left, right))
    match node.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right


def _duration_times(left: Any, right: Any) -> int | None:
    if isinstance(left, float) or isinstance(right, float):
        product = double(left) * double(right)
        return functions.rounded(product, 0) if math.isfinite(product) else None
    return int((Decimal(left) * right).quantize(Decimal(1), context=ROUNDING))
