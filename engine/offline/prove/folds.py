"""Encode aggregates over the payment's transactions, of which a proof considers only a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from tollkeeper.engine.offline.prove.numbers import limit_term
from tollkeeper.engine.offline.prove.terms import (
    TRUE_TERM,
    Formula,
    SmtTerm,
    UnsayableError,
    any_of,
    logical_and,
    logical_or,
)
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t


class FoldPart(NamedTuple):
    """One transaction: whether it exists, the result of `where`, and its value."""

    exists: Formula
    where: SmtTerm
    value: SmtTerm | None


def encode_fold(node: p.Fold, parts: Sequence[FoldPart]) -> SmtTerm:
    """Raises `UnsayableError`."""
    if node.function in ("any", "all"):
        return _quantify(node.function, parts)
    kept = [z3.And(part.exists, part.where.is_true) for part in parts]
    if node.function == "count":
        return SmtTerm(TRUE_TERM, z3.Sum([z3.If(each, 1, 0) for each in kept]), node.type)
    values = [part.value for part in parts if part.value is not None]
    there = [z3.And(keep, value.there) for keep, value in zip(kept, values, strict=True)]
    match node.function:
        case "distinct":
            return SmtTerm(TRUE_TERM, _count_different(there, values), node.type)
        case "sum" if not _is_double(node.type):
            terms = [z3.If(e, v.value, 0) for e, v in zip(there, values, strict=True)]
            return limit_term(SmtTerm(TRUE_TERM, z3.Sum(terms), node.type))
        case "min" | "max" if not _is_double(node.type):
            return _extreme(node, there, values)
        case _:
            raise UnsayableError("a mean, or a total of doubles, over transactions")


def _is_double(kind: t.Type) -> bool:
    return isinstance(kind, t.Number) and kind.scale is None


def _quantify(function: str, parts: Sequence[FoldPart]) -> SmtTerm:
    neutral = z3.BoolVal(function == "all")
    terms = [
        SmtTerm(
            z3.Or(z3.Not(part.exists), part.where.there),
            z3.If(part.exists, part.where.value, neutral),
            t.Boolean(),
        )
        for part in parts
    ]
    return logical_or(terms) if function == "any" else logical_and(terms)


def _count_different(there: Sequence[Formula], values: Sequence[SmtTerm]) -> Formula:
    first_of_its_kind = []
    for index, (exists, value) in enumerate(zip(there, values, strict=True)):
        seen = [z3.And(there[other], values[other].value == value.value) for other in range(index)]
        first_of_its_kind.append(z3.If(z3.And(exists, z3.Not(any_of(seen))), 1, 0))
    return z3.Sum(first_of_its_kind)


def _extreme(node: p.Fold, there: Sequence[Formula], values: Sequence[SmtTerm]) -> SmtTerm:
    value, exists = values[0].value, there[0]
    for also, term in zip(there[1:], values[1:], strict=True):
        better = term.value < value if node.function == "min" else term.value > value
        value = z3.If(z3.And(also, z3.Or(z3.Not(exists), better)), term.value, value)
        exists = z3.Or(exists, also)
    return SmtTerm(exists, value, node.type)
