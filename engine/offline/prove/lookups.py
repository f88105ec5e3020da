"""Encode look-ups in lists, tables and rates: any result, but equal results for equal look-ups."""

from __future__ import annotations

import z3

from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.terms import (
    Formula,
    SmtTerm,
    UnsayableError,
    choices_of,
    scale_term,
)
from tollkeeper.engine.offline.prove.texts import encode_text
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_ENTRY_SCALE = 6
"""The decimal places of a number on a list."""
_HIGHEST_RATE = 10**20


def is_on_list(encoder: Encoder, name: str, value: SmtTerm) -> Formula:
    """Raises `UnsayableError`."""
    kind = value.type
    if isinstance(kind, t.Number):
        if kind.scale is None or kind.scale > _ENTRY_SCALE:
            raise UnsayableError("a number that a list cannot hold on a list")
        scaled = scale_term(value.value, _ENTRY_SCALE - kind.scale)
        value = SmtTerm(value.there, scaled, t.Number(_ENTRY_SCALE))
    else:
        value = encode_text(value)
    found = encoder.fresh(z3.BoolSort(), f"@{name}")
    for other, looked_up, answer in encoder.lists:
        if other == name:
            encoder.assume(z3.Implies(looked_up.value == value.value, answer == found))
    encoder.lists.append((name, value, found))
    return found


def encode_column(encoder: Encoder, node: p.TableValue, key: SmtTerm, variable: str) -> SmtTerm:
    """A column of the table's row for a key; `variable` is its name in the formula."""
    key = encode_text(key)
    row = encoder.variable(variable, node.type)
    for other, looked_up, answer in encoder.rows:
        if (other.table, other.column) == (node.table, node.column):
            same = z3.And(answer.there == row.there, answer.value == row.value)
            encoder.assume(z3.Implies(looked_up.value == key.value, same))
    encoder.rows.append((node, key, row))
    return SmtTerm(z3.And(key.there, row.there), row.value, node.type)


def encode_amount_in(encoder: Encoder, wanted: str, kind: t.Type) -> SmtTerm:
    """The payment's amount in the wanted currency, by a rate of one moment."""
    source = encoder.source
    amount, currency = source.field(encoder, "amount"), source.field(encoder, "currency")
    same = currency.value == (choices_of(currency) or ()).index(wanted)
    if wanted not in encoder.rates:
        exists, rate = z3.Bool(f"rate {wanted}?"), z3.Int(f"rate {wanted}")
        encoder.assume(z3.And(rate >= 1, rate <= _HIGHEST_RATE))
        encoder.rates[wanted] = exists, rate
    exists, rate = encoder.rates[wanted]
    there = z3.And(amount.there, currency.there, z3.Or(same, exists))
    value = z3.If(same, amount.value * 10**RATE_SCALE, amount.value * rate)
    return SmtTerm(there, value, kind)
