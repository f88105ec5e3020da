"""Comparisons that are the same for every value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.diagnostics import Diagnostic


def always_the_same(inner: Iterable[p.Expression], numbers: Numbers) -> Iterator[Diagnostic]:
    """The warnings of the comparisons among the parts of an expression."""
    for part in inner:
        match part:
            case p.Compare() if _is_missing(part.left) or _is_missing(part.right):
                yield say.divided_by_zero(part.span)
            case p.Compare() if _is_with_itself(part, numbers):
                yield say.compared_with_itself(part.span, part.operator in ("==", "<=", ">="))
            case p.Compare():
                outcome = _ordered(part.operator, part.left.type, part.right.type)
                if outcome is not None:
                    yield say.always_true(part.span) if outcome else say.never_true(part.span)
            case p.Between() if _is_missing(part.value):
                yield say.divided_by_zero(part.span)
            case p.Between():
                above = _ordered(">=", part.value.type, part.low.type)
                below = _ordered("<=", part.value.type, part.high.type)
                upside_down = _ordered(">", part.low.type, part.high.type)
                if above is False or below is False or upside_down:
                    yield say.never_true(part.span)
                elif above and below:
                    yield say.always_true(part.span)
            case _:
                pass


def _is_missing(node: p.Expression) -> bool:
    """Whether a value is missing whatever the payment: it divides by zero."""
    match node:
        case p.Arithmetic(operator="/", right=p.Constant(value=0)):
            return True
        case p.Arithmetic():
            return _is_missing(node.left) or _is_missing(node.right)
        case p.Negate():
            return _is_missing(node.operand)
        case _:
            return False


def _is_with_itself(node: p.Compare, numbers: Numbers) -> bool:
    is_constant = isinstance(node.right, p.Constant)
    return not is_constant and numbers.of(node.left) == numbers.of(node.right)


def _ordered(operator: str, left: t.Type, right: t.Type) -> bool | None:
    """How all numbers of two ranges compare, None when it depends."""
    if not isinstance(left, t.Number) or not isinstance(right, t.Number):
        return None
    match operator:
        case "<":
            return _below(left, right, strictly=True)
        case "<=":
            return _below(left, right, strictly=False)
        case ">":
            return _below(right, left, strictly=True)
        case ">=":
            return _below(right, left, strictly=False)
        case "==":
            return False if _apart(left, right) else None
        case _:
            return True if _apart(left, right) else None


def _below(left: t.Number, right: t.Number, *, strictly: bool) -> bool | None:
    """Whether every number of `left` is below (or at) every one of `right`, or none is."""
    if _at_most(left.high, right.low, strictly=strictly):
        return True
    return False if _at_most(right.high, left.low, strictly=not strictly) else None


def _at_most(high: Decimal | None, low: Decimal | None, *, strictly: bool) -> bool:
    return high is not None and low is not None and (high < low or (high == low and not strictly))


def _apart(left: t.Number, right: t.Number) -> bool:
    return _at_most(left.high, right.low, strictly=True) or _at_most(
        right.high, left.low, strictly=True
    )
