"""Aggregates over the payment's transactions in generated Python: one loop each."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tollkeeper.engine.programs.compile import code, numbers
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.unit import Unit
from tollkeeper.grammar import program as p

_ELEMENT = "x"


@dataclass(frozen=True, slots=True)
class Loop:
    """The body of a loop: `first` statements, then `where` and `value`.

    `where` is a test, but for `any` and `all` a value that may be None.
    """

    elements: Code
    first: Sequence[ast.stmt]
    where: ast.expr | None
    value: Code | None


def each_element(elements: Code, body: Sequence[ast.stmt]) -> ast.stmt:
    """The loop that runs `body` for each transaction."""
    there = ast.BoolOp(ast.Or(), [elements.expression(), ast.Tuple([], ast.Load())])
    return ast.For(ast.Name(_ELEMENT, ast.Store()), there, list(body), [])


def fold(unit: Unit, node: p.Fold, loop: Loop) -> Code:
    """Write the loop; returns the aggregate's value."""
    match node.function:
        case "any" | "all":
            return _decide(unit, node.function, loop)
        case "count":
            return _count(unit, loop)
        case "sum" | "avg":
            return _total(unit, node, loop)
        case "distinct":
            return _distinct(unit, loop)
        case "min" | "max":
            return _extreme(unit, node.function, loop)


def _run(unit: Unit, loop: Loop, met: Sequence[ast.stmt]) -> None:
    """Write the loop, with `met` for each element that passes `where` and the value's tests."""
    needs = () if loop.value is None else loop.value.needs
    tests = (*(() if loop.where is None else (loop.where,)), *needs)
    inner = [code.when(code.both(tests), met)] if tests else list(met)
    _iterate(unit, loop, inner)


def _iterate(unit: Unit, loop: Loop, inner: Sequence[ast.stmt]) -> None:
    unit.body.append(each_element(loop.elements, [*loop.first, *inner]))


def _decide(unit: Unit, function: str, loop: Loop) -> Code:
    decisive = code.constant(function == "any")
    state, one = unit.fresh("state"), unit.fresh("b")
    assert loop.where is not None
    unit.body.append(code.assign(state, code.constant(function == "all")))
    inner = [
        code.assign(one, loop.where),
        code.when(code.compare_code("is", code.name(one), decisive), [ast.Return(decisive)]),
        code.when(
            code.compare_code("is", code.name(one), code.NONE_NODE),
            [code.assign(state, code.NONE_NODE)],
        ),
    ]
    _iterate(unit, loop, inner)
    return Code(code.name(state), (), optional=True)


def _add(identifier: str, amount: ast.expr) -> ast.stmt:
    return ast.AugAssign(ast.Name(identifier, ast.Store()), ast.Add(), amount)


def _count(unit: Unit, loop: Loop) -> Code:
    count = unit.fresh("count")
    unit.body.append(code.assign(count, code.constant(0)))
    _run(unit, loop, [_add(count, code.constant(1))])
    return Code(code.name(count))


def _require_value(unit: Unit, loop: Loop) -> tuple[Loop, ast.expr]:
    """The loop with a test that the value is not missing, and the value."""
    assert loop.value is not None
    value = unit.require(loop.value)
    return Loop(loop.elements, loop.first, loop.where, value), value.result


def _total(unit: Unit, node: p.Fold, loop: Loop) -> Code:
    assert node.value is not None
    loop, value = _require_value(unit, loop)
    scale = numbers.scale_of(node.value)
    total, count = unit.fresh("total"), unit.fresh("count")
    if scale is None:
        met = _collect(unit, total, value, "append", ast.List([], ast.Load()))
    else:
        unit.body.append(code.assign(total, code.constant(0)))
        met = [_add(total, value)]
    if node.function == "avg":
        unit.body.append(code.assign(count, code.constant(0)))
        met = [*met, _add(count, code.constant(1))]
    _run(unit, loop, met)
    whole = Code(code.name(total))
    if scale is None:
        whole = Code(code.call("total", code.name(total)), (), optional=True)
    if node.function == "sum":
        return whole if scale is None else numbers.fitting(unit, whole, node.type)
    whole = unit.require(whole)
    size = code.binary("*", code.name(count), code.constant(10 ** (scale or 0)))
    mean = code.binary("/", whole.result, size)
    return Code(mean, (code.compare_code("!=", code.name(count), code.constant(0)), *whole.needs))


def _collect(
    unit: Unit, into: str, value: ast.expr, method: str, empty: ast.expr
) -> list[ast.stmt]:
    unit.body.append(code.assign(into, empty))
    return [ast.Expr(code.call(code.attribute(code.name(into), method), value))]


def _distinct(unit: Unit, loop: Loop) -> Code:
    loop, value = _require_value(unit, loop)
    seen = unit.fresh("seen")
    _run(unit, loop, _collect(unit, seen, value, "add", code.call("set")))
    return Code(code.call("len", code.name(seen)))


def _extreme(unit: Unit, function: str, loop: Loop) -> Code:
    loop, value = _require_value(unit, loop)
    best, one = unit.fresh("best"), unit.fresh("v")
    unit.body.append(code.assign(best, code.NONE_NODE))
    sign = "<" if function == "min" else ">"
    is_first = code.compare_code("is", code.name(best), code.NONE_NODE)
    is_better = code.compare_code(sign, code.name(one), code.name(best))
    better = code.when(code.either((is_first, is_better)), [code.assign(best, code.name(one))])
    _run(unit, loop, [code.assign(one, value), better])
    return Code(code.name(best), (), optional=True)
