"""Tests of values in generated Python, two-valued when no operand is missing.

A caller that only needs "definitely true" need not check the first operand for None: None equals no
constant and is in no set.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.numbers import at_scale, common_scale, scale_of
from tollkeeper.engine.programs.compile.unit import Unit
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.regexes import regex_test

_ADDRESS_BITS = 128


def compare(unit: Unit, node: p.Compare, left: Code, right: Code) -> Code:
    """`left operator right`; a side that is not required here may be None in the result."""
    if isinstance(node.left.type, t.Number):
        left, right = _meeting(unit, (node.left, left), (node.right, right))
    return Code(
        code.compare_code(node.operator, left.result, right.result), (*left.needs, *right.needs)
    )


def between_constants(unit: Unit, node: p.Between, value: Code, low: Code, high: Code) -> Code:
    """`low <= value <= high` of ends that are never missing."""
    if isinstance(node.value.type, t.Number):
        scale = common_scale((node.value, node.low, node.high))
        value = at_scale(unit, value, scale_of(node.value), scale)
        low = at_scale(unit, low, scale_of(node.low), scale)
        high = at_scale(unit, high, scale_of(node.high), scale)
    return Code(code.between_code(low.result, value.result, high.result), value.needs)


def _meeting(
    unit: Unit, one: tuple[p.Expression, Code], other: tuple[p.Expression, Code]
) -> tuple[Code, Code]:
    (left, left_code), (right, right_code) = one, other
    if isinstance(right, p.Constant):
        constant = _scale_constant(right, scale_of(left))
        if constant is not None:
            return left_code, Code(code.constant(constant))
    if isinstance(left, p.Constant):
        constant = _scale_constant(left, scale_of(right))
        if constant is not None:
            return Code(code.constant(constant)), right_code
    scale = common_scale((left, right))
    return (
        at_scale(unit, left_code, scale_of(left), scale),
        at_scale(unit, right_code, scale_of(right), scale),
    )


def _scale_constant(constant: p.Constant, scale: int | None) -> int | float | None:
    """A decimal constant as a number of `scale`; None when it has more decimals than that."""
    own = scale_of(constant)
    if own is None:
        return None
    value, unit = int(constant.value), int(10**own)
    if scale is None:
        return value / unit
    scaled, rest = divmod(value * 10**scale, unit)
    return None if rest else int(scaled)


def one_of(node: p.OneOf, value: Code) -> Code:
    """`value in [constants]`."""
    options: list[Any] = [option.value for option in node.options]
    if isinstance(node.value.type, t.Number):
        scale = scale_of(node.value)
        # An option with more decimals than the value has is never equal to it.
        options = [
            each for option in node.options if (each := _scale_constant(option, scale)) is not None
        ]
    if len(options) == 1:
        sign = "!=" if node.negated else "=="
        return Code(code.compare_code(sign, value.result, code.constant(options[0])), value.needs)
    sign = "not in" if node.negated else "in"
    held = code.constant(frozenset(options))
    return Code(code.compare_code(sign, value.result, held), value.needs)


def in_networks(unit: Unit, node: p.InNetworks, value: Code) -> Code:
    """`value in ["10.0.0.0/8", …]`: one look-up for each length of prefix."""
    value = unit.named(value)
    by_length: defaultdict[int, set[int]] = defaultdict(set)
    for first, bits in node.networks:
        by_length[bits].add(first >> (_ADDRESS_BITS - bits))
    tests = [_has_prefix(value.result, *each) for each in sorted(by_length.items())]
    found = code.either(tests)
    return Code(code.opposite(found) if node.negated else found, value.needs)


def _has_prefix(address: ast.expr, bits: int, prefixes: set[int]) -> ast.expr:
    shifted = code.binary(">>", address, code.constant(_ADDRESS_BITS - bits))
    if len(prefixes) == 1:
        return code.compare_code("==", shifted, code.constant(prefixes.pop()))
    return code.compare_code("in", shifted, code.constant(frozenset(prefixes)))


def in_list(unit: Unit, node: p.InList, value: Code, at: Code) -> Code:
    """`value in @list`; a number is looked up as an entry is carried."""
    value = unit.require(value)
    entry = value.result
    if isinstance(node.value.type, t.Number):
        scale = code.constant(scale_of(node.value))
        entry = code.call("as_entry", entry, scale)
    found = code.call("on_list", code.name("e"), code.constant(node.list), entry, at.result)
    result = code.opposite(found) if node.negated else found
    return Code(result, (*value.needs, *at.needs))


def in_entry(unit: Unit, node: p.InEntry, value: Code, entry: Code) -> Code:
    """`value in metadata["skus"]`."""
    entries, value = _listed(unit, entry), unit.require(value)
    assert isinstance(node.entry, p.MetadataFact)
    sets = code.attribute(code.name("p"), "entry_sets")
    looked_up = (sets, code.constant((node.entry.key, *node.entry.inner)), entries.result)
    if isinstance(node.value.type, t.Number):
        scale = code.constant(scale_of(node.value))
        found = code.call("number_among", *looked_up, value.result, scale)
    else:
        found = code.call("among", *looked_up, value.result)
    result = code.opposite(found) if node.negated else found
    return Code(result, (*entries.needs, *value.needs))


def entry_count(unit: Unit, entry: Code) -> Code:
    """`count(metadata["skus"])`."""
    entries = _listed(unit, unit.require(entry))
    return Code(code.call("len", entries.result), entries.needs)


def _listed(unit: Unit, entry: Code) -> Code:
    listed = code.call("listed_entries", entry.result)
    return unit.require(Code(listed, entry.needs, optional=True))


def text_test(unit: Unit, node: p.TextTest, left: Code, right: Code) -> Code:
    """`contains`, `starts with`, `ends with`."""
    left, right = unit.require(left), unit.require(right)
    needs = (*left.needs, *right.needs)
    match node.operator:
        case "contains":
            return Code(code.compare_code("in", right.result, left.result), needs)
        case "starts with":
            method = code.attribute(left.result, "startswith")
        case "ends with":
            method = code.attribute(left.result, "endswith")
    return Code(code.call(method, right.result), needs)


def matches(unit: Unit, node: p.Matches, value: Code) -> Code:
    """RE2, unanchored."""
    value = unit.require(value)
    is_found = unit.module.global_name("search", regex_test(node.pattern, node.ignore_case))
    return Code(code.call(is_found, value.result), value.needs)


def presence(node: p.Presence, operand: Code) -> Code:
    """`is missing`, `is present`."""
    tests: Iterable[ast.expr] = operand.needs
    if isinstance(node.operand.type, t.Collection):
        # Sent empty says no more than not sent.
        tests = (*tests, code.call("bool", operand.result))
    elif operand.optional:
        tests = (*tests, code.is_there(operand.result))
    is_present = code.both(tests)
    return Code(is_present if node.state == "present" else code.opposite(is_present))
