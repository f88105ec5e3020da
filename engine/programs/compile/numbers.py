"""Numbers, instants and durations in generated Python: integers with a scale, and doubles.

Range checks are generated only where the types allow a value that can't be represented.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.functions import (
    DURATION_LIMIT,
    FIRST_INSTANT,
    LAST_INSTANT,
    LIMIT,
)
from tollkeeper.engine.programs.compile.unit import Unit
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_MOST_RECORDS: int = 2**63
"""More records, or characters of text, than fit into any memory."""


def magnitude(node: p.Expression) -> int:
    """The largest absolute value of a decimal in its representation."""
    kind = node.type
    assert isinstance(kind, t.Number)
    assert kind.scale is not None
    if isinstance(node, (p.Fold, p.History)) and node.function in ("count", "distinct"):
        return _MOST_RECORDS
    if isinstance(node, p.Call) and node.function == "length":
        return _MOST_RECORDS
    if kind.low is None or kind.high is None:
        return LIMIT - 1
    largest = max(abs(kind.low), abs(kind.high))
    dividend, divisor = largest.as_integer_ratio()
    unit: int = 10**kind.scale
    return min(-(-dividend * unit // divisor), LIMIT - 1)


def scale_of(node: p.Expression) -> int | None:
    return node.type.scale if isinstance(node.type, t.Number) else 0


def common_scale(nodes: Sequence[p.Expression]) -> int | None:
    """The scale that holds all of them, None when one is a double."""
    scales = [scale_of(node) for node in nodes]
    known = [scale for scale in scales if scale is not None]
    return max(known) if len(known) == len(scales) else None


def at_scale(unit: Unit, value: Code, scale: int | None, wanted: int | None) -> Code:
    """A number carried with another scale, no smaller than its own; None is a double."""
    if scale == wanted or scale is None:
        return value
    value = unit.require(value)
    if wanted is None:
        return _map_value(value, lambda carried: carried / 10**scale, "/", 10**scale)
    factor = 10 ** (wanted - scale)
    return _map_value(value, lambda carried: carried * factor, "*", factor)


def _map_value(value: Code, function: Callable[[Any], Any], operator: str, operand: int) -> Code:
    if isinstance(value.result, ast.Constant):
        return Code(code.constant(function(value.result.value)), value.needs)
    return Code(code.binary(operator, value.result, code.constant(operand)), value.needs)


def fitting(unit: Unit, value: Code, kind: t.Type, largest: int | None = None) -> Code:
    """The value, missing when `kind` can't carry it; `largest` is its size at most."""
    match kind:
        case t.Number(scale=None):
            return _limit(unit, value, math.inf)
        case t.Number() if largest is None or largest >= LIMIT:
            return _limit(unit, value, LIMIT)
        case t.Duration() if largest is None or largest > DURATION_LIMIT:
            return _limit(unit, value, DURATION_LIMIT + 1)
        case t.Instant():
            return _limit_between(unit, value, FIRST_INSTANT - 1, LAST_INSTANT + 1)
        case _:
            return value


def _limit(unit: Unit, value: Code, limit: float) -> Code:
    return _limit_between(unit, value, -limit, limit)


def _limit_between(unit: Unit, value: Code, low: float, high: float) -> Code:
    value = unit.require(value)
    result = checked = value.result
    if not isinstance(result, ast.Name):
        local = unit.fresh("v")
        result, checked = code.name(local), code.bind(local, result)
    return Code(
        result, (*value.needs, code.inside(code.constant(low), checked, code.constant(high)))
    )


def arithmetic(unit: Unit, node: p.Arithmetic, left: Code, right: Code) -> Code:
    """`left operator right`, missing as docs/language.md, "Types and missing values", says."""
    left, right = unit.require(left), unit.require(right)
    if node.operator == "/":
        return _quotient(unit, node, left, right)
    if isinstance(node.type, t.Number):
        return _number(unit, node, left, right)
    if node.operator == "*":
        return _duration_times(unit, node, left, right)
    result = Code(
        code.binary(node.operator, left.result, right.result), (*left.needs, *right.needs)
    )
    is_span = isinstance(node.left.type, t.Instant) and isinstance(node.right.type, t.Instant)
    return result if is_span else fitting(unit, result, node.type)


def _number(unit: Unit, node: p.Arithmetic, left: Code, right: Code) -> Code:
    assert isinstance(node.type, t.Number)
    scale = node.type.scale
    if scale is None or node.operator != "*":
        left = at_scale(unit, left, scale_of(node.left), scale)
        right = at_scale(unit, right, scale_of(node.right), scale)
    result = Code(
        code.binary(node.operator, left.result, right.result), (*left.needs, *right.needs)
    )
    return fitting(unit, result, node.type, None if scale is None else _largest(node, scale))


def _largest(node: p.Arithmetic, scale: int) -> int:
    left, right = magnitude(node.left), magnitude(node.right)
    if node.operator == "*":
        return left * right
    return left * _factor(node.left, scale) + right * _factor(node.right, scale)


def _factor(node: p.Expression, scale: int) -> int:
    """The factor from a decimal's own scale to `scale`."""
    factor: int = 10 ** (scale - (scale_of(node) or 0))
    return factor


def _quotient(unit: Unit, node: p.Arithmetic, left: Code, right: Code) -> Code:
    right = unit.named(right)
    needs = (*left.needs, *right.needs)
    if not isinstance(right.result, ast.Constant):
        needs = (*needs, code.compare_code("!=", right.result, code.constant(0)))
    elif right.result.value == 0:
        needs = (*needs, code.FALSE)
        right = Code(code.constant(1))
    scales = scale_of(node.left), scale_of(node.right)
    dividend = at_scale(unit, Code(left.result), scales[0], None)
    divisor = at_scale(unit, Code(right.result), scales[1], None)
    result = Code(code.binary("/", dividend.result, divisor.result), needs)
    # Decimals have at most 38 digits: their quotient is far from a double's ends.
    return result if None not in scales else fitting(unit, result, node.type)


def _duration_times(unit: Unit, node: p.Arithmetic, left: Code, right: Code) -> Code:
    scale = next(
        each.type.scale for each in (node.left, node.right) if isinstance(each.type, t.Number)
    )
    needs = (*left.needs, *right.needs)
    if scale is not None:
        product = code.binary("*", left.result, right.result)
        quotient = code.call("divided", product, code.constant(10**scale)) if scale else product
        return fitting(unit, Code(quotient, needs), t.Duration())
    left = at_scale(unit, Code(left.result), scale_of(node.left), None)
    right = at_scale(unit, Code(right.result), scale_of(node.right), None)
    product_of_doubles = Code(code.binary("*", left.result, right.result), needs)
    whole = fitting(unit, product_of_doubles, t.Number(None))
    rounded = code.call("rounded", whole.result, code.constant(0))
    return fitting(unit, Code(rounded, whole.needs), t.Duration())


def curve(unit: Unit, node: p.Curve, value: Code) -> Code:
    """What the value's step adds: the first one whose bound is above it."""
    value = unit.require(value)
    scale = common_scale((node.value, *node.bounds))
    found = at_scale(unit, value, scale_of(node.value), scale)
    bounds = tuple(_constant_at_scale(unit, each, scale) for each in node.bounds)
    amounts = tuple(_constant_at_scale(unit, each, None) for each in node.amounts)
    place = code.call("bisect_right", code.constant(bounds), found.result)
    adds = ast.Subscript(code.constant(amounts), place, ast.Load())
    if node.absent is None:
        return Code(adds, found.needs)
    absent = code.constant(_constant_at_scale(unit, node.absent, None))
    return Code(code.either_value(code.both(found.needs), adds, absent))


def _constant_at_scale(unit: Unit, constant: p.Constant, wanted: int | None) -> Any:
    """The value of a constant as it is carried with the scale `wanted`."""
    found = at_scale(unit, Code(code.constant(constant.value)), scale_of(constant), wanted)
    assert isinstance(found.result, ast.Constant)
    return found.result.value


def negate(unit: Unit, value: Code) -> Code:
    """The value with the other sign, which every type that has one can carry."""
    value = unit.require(value)
    if isinstance(value.result, ast.Constant):
        return Code(code.constant(-_value(value.result)), value.needs)
    return Code(ast.UnaryOp(ast.USub(), value.result), value.needs)


def _value(constant: ast.Constant) -> Any:
    return constant.value


def round_code(unit: Unit, node: p.Call, value: Code) -> Code:
    """`round(value, n)`, of the scale n of its type."""
    value = unit.require(value)
    source, wanted = scale_of(node.arguments[0]), scale_of(node)
    assert wanted is not None
    if source is None:
        whole = code.call("rounded", value.result, code.constant(wanted))
        return fitting(unit, Code(whole, value.needs), node.type)
    if source <= wanted:
        largest = magnitude(node.arguments[0]) * _factor(node.arguments[0], wanted)
        return fitting(unit, at_scale(unit, value, source, wanted), node.type, largest)
    quotient = code.call("divided", value.result, code.constant(10 ** (source - wanted)))
    return Code(quotient, value.needs)


def widen(unit: Unit, node: p.Call, value: Code) -> Code:
    """A choice among numbers of several scales, missing when its own scale can't carry it."""
    scale = scale_of(node)
    if not isinstance(node.type, t.Number) or scale is None:
        return value
    sizes = [magnitude(each) * _factor(each, scale) for each in node.arguments]
    return fitting(unit, value, node.type, max(sizes))
