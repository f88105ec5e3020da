"""Values of expressions as formulas: whether a value is present, and the value.

| type | formula |
|---|---|
| boolean | Bool |
| number with a scale | Int, the value times 10 ** scale |
| number without a scale | Real: every double is one, but not every real is a double |
| string | String of code points up to U+2FFFF |
| string with choices | Int, the index of the choice |
| ip, instant, duration | Int, as in `grammar/types.py` |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value

Formula: TypeAlias = Any
"""A z3 expression; the library has no types of its own."""

TRUE_TERM: Formula = z3.BoolVal(True)
FALSE_TERM: Formula = z3.BoolVal(False)
LAST_CODE_POINT = 0x2FFFF
"""The last code point that the solver's strings support."""
WITHOUT_VALUE = (t.Record, t.Headers, t.Metadata, t.Collection)
"""The types whose terms have no value of their own: they only contain others."""


@dataclass(frozen=True, slots=True)
class SmtTerm:
    """`value` is meaningless if `there` is false."""

    there: Formula
    value: Formula
    type: t.Type

    @property
    def is_true(self) -> Formula:
        """A boolean is definitely true."""
        return z3.And(self.there, self.value)

    @property
    def is_false(self) -> Formula:
        """A boolean is definitely false."""
        return z3.And(self.there, z3.Not(self.value))


_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}")


class UnsayableError(Exception):
    """The solver has no formula for a value, so nothing is proved about what contains it."""


def sort_of(kind: t.Type) -> Formula:
    match kind:
        case t.Boolean():
            return z3.BoolSort()
        case t.Number(scale=None):
            return z3.RealSort()
        case t.String(choices=None):
            return z3.StringSort()
        case _:
            return z3.IntSort()


def constant_term(value: Value, kind: t.Type) -> Formula:
    """Return a constant's formula. Raises `UnsayableError`."""
    match kind:
        case t.Boolean():
            return z3.BoolVal(bool(value))
        case t.Number(scale=None):
            return real(float(value))
        case t.String(choices=None):
            return text_formula(str(value))
        case t.String(choices=choices):
            assert choices is not None
            return z3.IntVal(choices.index(str(value)))
        case _:
            return z3.IntVal(int(value))


def real(value: float) -> Formula:
    """Return the double's exact value."""
    dividend, divisor = value.as_integer_ratio()
    return z3.Q(dividend, divisor)


def text_formula(text: str) -> Formula:
    """Return a text's formula. Raises `UnsayableError` for unsupported code points."""
    if any(ord(char) > LAST_CODE_POINT for char in text):
        raise UnsayableError("a character beyond U+2FFFF")
    plain = "".join(
        char if " " <= char <= "~" and char != "\\" else f"\\u{{{ord(char):x}}}" for char in text
    )
    return z3.StringVal(plain)


def text_value(value: Formula) -> str:
    """Return the text of a constant formula."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value.as_string())


def scale_term(value: Formula, by: int) -> Formula:
    return value if by == 0 else value * 10**by


def at_one_scale(one: SmtTerm, other: SmtTerm) -> tuple[Formula, Formula]:
    """Return two decimals, or two whole values of one kind, as integers of one scale."""
    scales = [decimal_places(one.type), decimal_places(other.type)]
    widest = max(scales)
    return scale_term(one.value, widest - scales[0]), scale_term(other.value, widest - scales[1])


def decimal_places(kind: t.Type) -> int:
    """Return a value's decimal places; 0 if it is not a decimal."""
    return (kind.scale or 0) if isinstance(kind, t.Number) else 0


def choices_of(term: SmtTerm) -> tuple[str, ...] | None:
    """Return the choices of a text with choices."""
    return term.type.choices if isinstance(term.type, t.String) else None


def all_of(parts: Sequence[Formula]) -> Formula:
    return TRUE_TERM if not parts else parts[0] if len(parts) == 1 else z3.And(*parts)


def any_of(parts: Sequence[Formula]) -> Formula:
    return FALSE_TERM if not parts else parts[0] if len(parts) == 1 else z3.Or(*parts)


def logical_and(parts: Sequence[SmtTerm]) -> SmtTerm:
    """Three-valued: false if one is false, else missing if one is missing."""
    is_true = all_of([part.is_true for part in parts])
    is_false = any_of([part.is_false for part in parts])
    return SmtTerm(z3.Or(is_true, is_false), is_true, t.Boolean())


def logical_or(parts: Sequence[SmtTerm]) -> SmtTerm:
    is_true = any_of([part.is_true for part in parts])
    is_false = all_of([part.is_false for part in parts])
    return SmtTerm(z3.Or(is_true, is_false), is_true, t.Boolean())
