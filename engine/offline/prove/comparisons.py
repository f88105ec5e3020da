"""Encode comparisons of two values, and of one with several."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import z3

from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.numbers import encode_double
from tollkeeper.engine.offline.prove.terms import Formula, SmtTerm, any_of, at_one_scale
from tollkeeper.engine.offline.prove.texts import as_comparable_texts
from tollkeeper.grammar import types as t

_ADDRESS_BITS = 128
_ORDER: dict[str, Callable[[Any, Any], Formula]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def encode_comparison(encoder: Encoder, sign: str, left: SmtTerm, right: SmtTerm) -> SmtTerm:
    kinds = left.type, right.type
    if any(isinstance(each, t.Number) and each.scale is None for each in kinds):
        a, b = encode_double(encoder, left).value, encode_double(encoder, right).value
    elif all(isinstance(each, t.String) for each in kinds):
        a, b = as_comparable_texts(left, right)
    elif isinstance(left.type, t.Boolean):
        a, b = left.value, right.value
    else:
        a, b = at_one_scale(left, right)
    return SmtTerm(z3.And(left.there, right.there), _ORDER[sign](a, b), t.Boolean())


def is_one_of(encoder: Encoder, value: SmtTerm, options: Iterable[SmtTerm]) -> Formula:
    return any_of([encode_comparison(encoder, "==", value, each).value for each in options])


def is_in_networks(address: Formula, networks: Iterable[tuple[int, int]]) -> Formula:
    """`networks` are (first address, prefix length)."""
    return any_of([_is_in_network(address, *each) for each in networks])


def _is_in_network(address: Formula, first: int, bits: int) -> Formula:
    size = 2 ** (_ADDRESS_BITS - bits)
    start = first // size * size
    return z3.And(address >= start, address < start + size)
