"""Warn of comparisons with the same result for every value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.literals import decimal
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic


def always_the_same(
    work: Work, inner: Iterable[p.Expression], numbers: Numbers
) -> Iterator[Diagnostic]:
    """Warn of such comparisons among the parts of an expression."""
    for part in inner:
        match part:
            case p.Compare() if _is_missing(part.left) or _is_missing(part.right):
                yield say.divided_by_zero(part.span)
            case p.Compare() if _is_with_itself(part, numbers):
                yield say.compared_with_itself(part.span, part.operator in ("==", "<=", ">="))
            case p.Compare():
                outcome = _compare_ranges(part.operator, part.left.type, part.right.type)
                if outcome is not None:
                    yield _of_range(work, part, always=outcome)
                elif part.operator == "==" and (most := _too_fine(part)) is not None:
                    yield say.too_many_decimals(part.span, most, work.text(part.left.span))
            case p.Between() if _is_missing(part.value):
                yield say.divided_by_zero(part.span)
            case p.Between():
                above = _compare_ranges(">=", part.value.type, part.low.type)
                below = _compare_ranges("<=", part.value.type, part.high.type)
                upside_down = _compare_ranges(">", part.low.type, part.high.type)
                if upside_down:
                    yield _downwards(work, part)
                elif above is False or below is False:
                    yield say.never_true(part.span)
                elif above and below:
                    yield say.always_true(part.span)
            case _:
                pass


def _of_range(work: Work, node: p.Compare, *, always: bool) -> Diagnostic:
    """Warn of a comparison whose result follows from the range of its left side."""
    kind = node.left.type
    if isinstance(kind, t.Number) and isinstance(node.right, p.Constant):
        low, high = kind.low, kind.high
        if low is not None and high is not None and low < high:
            return say.outside_range(node.span, work.text(node.left.span), low, high, always)
    return say.always_true(node.span) if always else say.never_true(node.span)


def _too_fine(node: p.Compare) -> int | None:
    """Return the decimals of a field or score if the constant has more."""
    left, right = node.left, node.right
    if not isinstance(left, p.Fact | p.Score) or not isinstance(right, p.Constant):
        return None
    if not isinstance(left.type, t.Number) or left.type.scale is None:
        return None
    exponent = decimal(right).normalize().as_tuple().exponent
    is_fine = isinstance(exponent, int) and -exponent > left.type.scale
    return left.type.scale if is_fine else None


def _downwards(work: Work, node: p.Between) -> Diagnostic:
    value, low, high = (work.text(each.span) for each in (node.value, node.low, node.high))
    is_hour = isinstance(node.value, p.Call) and node.value.function == "hour"
    if is_hour:
        correction = f"({value} >= {low} or {value} <= {high})"
    else:
        correction = f"{value} between {high} and {low}"
    return say.between_downwards(node.span, correction)


def _is_missing(node: p.Expression) -> bool:
    """Whether a value is always missing, because it divides by zero."""
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


def _compare_ranges(operator: str, left: t.Type, right: t.Type) -> bool | None:
    """Return the result of comparing any two numbers of two ranges; None if it varies."""
    if not isinstance(left, t.Number) or not isinstance(right, t.Number):
        return None
    match operator:
        case "<":
            return _is_below(left, right, strictly=True)
        case "<=":
            return _is_below(left, right, strictly=False)
        case ">":
            return _is_below(right, left, strictly=True)
        case ">=":
            return _is_below(right, left, strictly=False)
        case "==":
            return False if _disjoint(left, right) else None
        case _:
            return True if _disjoint(left, right) else None


def _is_below(left: t.Number, right: t.Number, *, strictly: bool) -> bool | None:
    """Whether every number of `left` is below (or equal to) every number of `right`; False if none
    is, None if it varies.
    """
    if _at_most(left.high, right.low, strictly=strictly):
        return True
    return False if _at_most(right.high, left.low, strictly=not strictly) else None


def _at_most(high: Decimal | None, low: Decimal | None, *, strictly: bool) -> bool:
    return high is not None and low is not None and (high < low or (high == low and not strictly))


def _disjoint(left: t.Number, right: t.Number) -> bool:
    return _at_most(left.high, right.low, strictly=True) or _at_most(
        right.high, left.low, strictly=True
    )
