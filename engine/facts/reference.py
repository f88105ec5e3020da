"""The names that a rule can use, in words: for `toll fields` and the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from msgspec import Struct

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field
from tollkeeper.grammar.words import type_in_words

_SCORE = Field(
    ("score",), t.Number(2, Decimal(0), Decimal(1)), "The score that the response shows.", ()
)


class NamedField(Struct, frozen=True):
    """A name as a rule writes it, its type and its meaning in words.

    `choices` are the strings that it can be, where there are only these.
    """

    name: str
    type: str
    doc: str
    choices: tuple[str, ...] = ()


def payment_fields() -> tuple[NamedField, ...]:
    """What a bare name means in a rule: the payment's fields, and `score`."""
    return (*_named_fields("", full_vocabulary().payment), _named_field("score", _SCORE))


def transaction_fields() -> tuple[NamedField, ...]:
    """The fields of each element of `transactions`."""
    return tuple(_named_fields("transactions.", full_vocabulary().transaction))


def decision_fields() -> tuple[NamedField, ...]:
    """What a payment of the history has besides."""
    return tuple(_named_fields("decision.", full_vocabulary().decision))


def every_field() -> tuple[NamedField, ...]:
    """The fields of payments, of their transactions, and of what was decided."""
    return (*payment_fields(), *transaction_fields(), *decision_fields())


def fits(name: str, pattern: str) -> bool:
    """Whether a name holds `pattern`, or fits it where it has `*`, `?` or `[…]`."""
    return pattern in name or fnmatchcase(name, pattern)


def _named_fields(prefix: str, fields: Mapping[str, Field]) -> Iterator[NamedField]:
    for name, field in fields.items():
        yield _named_field(prefix + name, field)


def _named_field(name: str, field: Field) -> NamedField:
    choices = field.type.choices if isinstance(field.type, t.String) else None
    return NamedField(name, type_in_words(field.type), field.doc, choices or ())
