"""Encode calls of the language's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from tollkeeper.engine.offline.prove.clock import encode_clock
from tollkeeper.engine.offline.prove.encoder import Compute, Encoder
from tollkeeper.engine.offline.prove.lookups import encode_amount_in
from tollkeeper.engine.offline.prove.numbers import encode_double, encode_round, limit_term
from tollkeeper.engine.offline.prove.terms import (
    SmtTerm,
    UnsayableError,
    all_of,
    any_of,
    decimal_places,
    scale_term,
)
from tollkeeper.engine.offline.prove.texts import encode_text, text_laws
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import lift
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t


def encode_call(encoder: Encoder, node: p.Call, given: Sequence[SmtTerm]) -> SmtTerm:
    """Raises `UnsayableError`."""
    there = all_of([each.there for each in given])
    kind = node.type
    match node.function:
        case "coalesce":
            return _coalesce(encoder, given, kind)
        case "abs":
            value = given[0].value
            return SmtTerm(there, z3.If(value >= 0, value, -value), kind)
        case "min" | "max":
            return _extreme(encoder, node, given)
        case "round":
            assert isinstance(kind, t.Number)
            return encode_round(encoder, given[0], kind)
        case "length":
            return SmtTerm(there, z3.Length(encode_text(given[0]).value), kind)
        case "hour" | "weekday":
            return encode_clock(encoder, node, given[0])
        case "left":
            text, characters = encode_text(given[0]), given[1]
            return SmtTerm(there, z3.SubString(text.value, 0, characters.value), kind)
        case "amount_in":
            [wanted] = node.arguments
            assert isinstance(wanted, p.Constant)
            return encode_amount_in(encoder, str(wanted.value), kind)
        case _:
            return _by_laws(encoder, node, given)


def _coalesce(encoder: Encoder, given: Sequence[SmtTerm], kind: t.Type) -> SmtTerm:
    parts = [_as_kind(encoder, each, kind) for each in given]
    value = parts[-1].value
    for part in reversed(parts[:-1]):
        value = z3.If(part.there, part.value, value)
    found = SmtTerm(any_of([each.there for each in parts]), value, kind)
    return limit_term(found) if isinstance(kind, t.Number) else found


def _extreme(encoder: Encoder, node: p.Call, given: Sequence[SmtTerm]) -> SmtTerm:
    first, *others = [_as_kind(encoder, each, node.type) for each in given]
    value = first.value
    for part in others:
        is_kept = value <= part.value if node.function == "min" else value >= part.value
        value = z3.If(is_kept, value, part.value)
    there = all_of([each.there for each in (first, *others)])
    return limit_term(SmtTerm(there, value, node.type))


def _as_kind(encoder: Encoder, term: SmtTerm, kind: t.Type) -> SmtTerm:
    if isinstance(kind, t.Number):
        if kind.scale is None:
            return encode_double(encoder, term)
        by = kind.scale - decimal_places(term.type)
        return SmtTerm(term.there, scale_term(term.value, by), kind)
    if isinstance(kind, t.String) and isinstance(term.type, t.String):
        if kind.choices == term.type.choices:
            return term
        if kind.choices is None:
            return encode_text(term)
        raise UnsayableError("a text among choices")
    return term


def _by_laws(encoder: Encoder, node: p.Call, given: Sequence[SmtTerm]) -> SmtTerm:
    """Encode a function of which the solver only knows laws."""
    compute = _COMPUTED.get(node.function)
    if compute is None:
        raise UnsayableError(f"the function `{node.function}`")
    parts = [encode_text(each) for each in given]
    constants = [str(each.value) for each in node.arguments if isinstance(each, p.Constant)]
    kind = t.String() if isinstance(node.type, t.String) else node.type
    found = encoder.apply(f"{node.function}/{','.join(constants)}", parts, kind, compute(node))
    for law in text_laws(node.function, parts[0], found):
        encoder.assume(law)
    return found


def _of_text(function: Callable[[str], Any]) -> Callable[[p.Call], Compute]:
    return lambda _node: function


def _number(node: p.Call) -> Compute:
    return lambda text: lift(functions.number(text), node.type)


def _network(_node: p.Call) -> Compute:
    def compute(address: int, bits: Any, bits6: Any = 64) -> str:
        return functions.ip_network(address, int(bits), int(bits6))

    return compute


_COMPUTED: dict[str, Callable[[p.Call], Compute]] = {
    "lower": _of_text(functions.lower),
    "upper": _of_text(functions.upper),
    "email_domain": _of_text(functions.email_domain),
    "email_local": _of_text(functions.email_local),
    "entropy": _of_text(functions.entropy),
    "number": _number,
    "ip_network": _network,
}
