"""Encode texts and their functions: exactly where the solver's strings allow it, else by laws."""

from __future__ import annotations

from collections.abc import Callable

import z3

from tollkeeper.engine.offline.prove.terms import (
    Formula,
    SmtTerm,
    choices_of,
    constant_term,
    text_value,
)
from tollkeeper.grammar import types as t

TEXT_TESTS: dict[str, Callable[[Formula, Formula], Formula]] = {
    "contains": lambda text, part: z3.Contains(text, part),
    "starts with": lambda text, part: z3.PrefixOf(part, text),
    "ends with": lambda text, part: z3.SuffixOf(part, text),
}


def encode_text(term: SmtTerm) -> SmtTerm:
    """Convert a text with choices to a general text; other values are unchanged."""
    choices = choices_of(term)
    if choices is None:
        return term
    *others, last = choices
    value = constant_term(last, t.String())
    for index, choice in enumerate(others):
        value = z3.If(term.value == index, constant_term(choice, t.String()), value)
    return SmtTerm(term.there, value, t.String())


def as_comparable_texts(left: SmtTerm, right: SmtTerm) -> tuple[Formula, Formula]:
    """Convert two texts, either of which may be an index of choices, to one representation."""
    if choices_of(left) == choices_of(right):
        return left.value, right.value
    for one, other in ((left, right), (right, left)):
        choices = choices_of(one)
        if choices and z3.is_string_value(other.value):
            text = text_value(other.value)
            index = z3.IntVal(choices.index(text) if text in choices else -1)
            return (one.value, index) if one is left else (index, one.value)
    return encode_text(left).value, encode_text(right).value


def text_laws(function: str, text: SmtTerm, found: SmtTerm) -> list[Formula]:
    """The laws that hold for every value of the function."""
    laws = _LAWS.get(function)
    return [] if laws is None else laws(text, found)


def _same_length(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    same = z3.Length(found.value) == z3.Length(text.value)
    return [same, z3.Implies(text.there, found.there)]


def _lower(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    same = found.value == text.value
    return [*_same_length(text, found), z3.Implies(_is_ascii_without("A", "Z", text.value), same)]


def _upper(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    same = found.value == text.value
    return [*_same_length(text, found), z3.Implies(_is_ascii_without("a", "z", text.value), same)]


def _is_ascii_without(first: str, last: str, text: Formula) -> Formula:
    """Printable ASCII except the letters from `first` to `last`."""
    below, above = chr(ord(first) - 1), chr(ord(last) + 1)
    kept = z3.Union(z3.Range(" ", below), z3.Range(above, "~"))
    return z3.InRe(text, z3.Star(kept))


def _split(text: SmtTerm) -> tuple[Formula, Formula, Formula]:
    """Return the parts before and after the last `@`, or all of the text as the second part if
    there is none; and the formula that defines them.
    """
    sign = z3.StringVal("@")
    before, after = z3.FreshConst(z3.StringSort()), z3.FreshConst(z3.StringSort())
    has = z3.Contains(text.value, sign)
    parts = text.value == z3.Concat(before, sign, after)
    split = z3.And(
        z3.Implies(has, parts),
        z3.Implies(z3.Not(has), z3.And(before == z3.StringVal(""), after == text.value)),
        z3.Not(z3.Contains(after, sign)),
    )
    return before, after, split


def _local_part(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    before, _, split = _split(text)
    there = found.there == (z3.Length(before) > 0)
    return [split, found.value == before, z3.Implies(text.there, there)]


def _domain_part(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    _, after, split = _split(text)
    there = found.there == (z3.Length(after) > 0)
    same_length = z3.Length(found.value) == z3.Length(after)
    same = z3.Implies(_is_ascii_without("A", "Z", after), found.value == after)
    return [split, same_length, same, z3.Implies(text.there, there)]


def _not_negative(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    return [found.value >= 0, z3.Implies(text.there, found.there)]


_LAWS: dict[str, Callable[[SmtTerm, SmtTerm], list[Formula]]] = {
    "lower": _lower,
    "upper": _upper,
    "email_local": _local_part,
    "email_domain": _domain_part,
    "entropy": _not_negative,
}
