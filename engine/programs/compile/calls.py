"""Functions of the language in generated Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from tollkeeper.engine.programs.compile import code, numbers
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.unit import Unit
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_MAY_BE_MISSING = ("email_domain", "email_local", "number", "hour", "weekday")
_WIDEST_IPV6 = code.constant(64)


def call(unit: Unit, node: p.Call, arguments: Sequence[Code]) -> Code:
    """A function's value."""
    match node.function:
        case "coalesce":
            return _coalesce(unit, node, arguments)
        case "min" | "max":
            return _extreme(unit, node, arguments)
        case "round":
            return numbers.round_code(unit, node, arguments[0])
        case "amount_in":
            return _amount_in(unit, node, arguments[0])
        case "abs":
            return _plain("abs", unit, arguments)
        case "length":
            return _plain("len", unit, arguments)
        case "hour" | "weekday":
            return _at_place(unit, node, arguments)
        case "ip_network":
            completed = arguments if len(arguments) > 2 else (*arguments, Code(_WIDEST_IPV6))
            return _plain("ip_network", unit, completed)
        case _:
            return _plain(node.function, unit, arguments)


def _plain(function: str, unit: Unit, arguments: Sequence[Code]) -> Code:
    required = [unit.require(argument) for argument in arguments]
    result = code.call(function, *(argument.result for argument in required))
    return Code(result, _needs(required), function in _MAY_BE_MISSING)


def _needs(values: Sequence[Code]) -> tuple[ast.expr, ...]:
    return tuple(need for value in values for need in value.needs)


def _at_scale_of_result(unit: Unit, node: p.Call, arguments: Sequence[Code]) -> list[Code]:
    """The arguments at the scale of the result."""
    if not isinstance(node.type, t.Number):
        return list(arguments)
    scale = numbers.scale_of(node)
    return [
        numbers.at_scale(unit, argument, numbers.scale_of(each), scale)
        for argument, each in zip(arguments, node.arguments, strict=True)
    ]


def _coalesce(unit: Unit, node: p.Call, arguments: Sequence[Code]) -> Code:
    local = unit.fresh("v")
    tests = [
        code.both((*each.needs, code.is_there(code.bind(local, each.result))))
        for each in _at_scale_of_result(unit, node, arguments)
    ]
    return numbers.widen(unit, node, Code(code.name(local), (code.either(tests),)))


def _extreme(unit: Unit, node: p.Call, arguments: Sequence[Code]) -> Code:
    required = [unit.require(each) for each in _at_scale_of_result(unit, node, arguments)]
    result = code.call(node.function, *(each.result for each in required))
    return numbers.widen(unit, node, Code(result, _needs(required)))


def _amount_in(unit: Unit, node: p.Call, wanted: Code) -> Code:
    fields = unit.module.vocabulary.payment
    amount = unit.require(unit.field("p", fields, ("amount",)))
    currency = unit.require(unit.field("p", fields, ("currency",)))
    converted = code.call(
        "amount_in", code.name("e"), amount.result, currency.result, wanted.result
    )
    value = Code(converted, (*amount.needs, *currency.needs), optional=True)
    return numbers.fitting(unit, value, node.type)


def _at_place(unit: Unit, node: p.Call, arguments: Sequence[Code]) -> Code:
    zone = code.attribute(code.name("e"), "time_zone")
    if len(node.arguments) > 1 and isinstance(node.arguments[1], p.Constant):
        zone = unit.module.global_name("zone", ZoneInfo(str(node.arguments[1].value)))
    return _plain(node.function, unit, (arguments[0], Code(zone)))
