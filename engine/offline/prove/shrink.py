"""Find the smallest payment that answers a question: fewest fields, usual values, smallest numbers.

Wishes are tried one after another; each that is compatible with the earlier ones is kept. At the
end every value is fixed, so the result depends on the question alone, not on the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import z3

from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.prove import clock
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.payment import CARD_FINGERPRINT, TRANSACTIONS, PaymentSource
from tollkeeper.engine.offline.prove.terms import WITHOUT_VALUE, Formula, SmtTerm
from tollkeeper.engine.offline.prove.witness import NOON, WitnessReader
from tollkeeper.grammar import types as t

_USUAL = ("EUR", "visa", "purchase", "initiated", "browser")
_ROUND = (0, 1, 10, 100, 10_000)
_PARTS = (1, 10, 100, 64)
"""A number without a scale is preferably a multiple of one of these fractions."""
_LENGTHS = (1, 2, 4, 8, 16)
_SIGNS = "a0"
_SPELT = 32
"""In texts up to this length, each character is minimised."""
_EXAMPLE = 0xFFFF_C633_6401
"""198.51.100.1, in a network reserved for examples."""
_MINUTE = 60_000_000

FindPayment: TypeAlias = Callable[[Sequence[Formula]], WitnessReader | None]
"""Find a payment for which all formulas hold; None if none was found."""


def shrink(encoder: Encoder, first: WitnessReader, find: FindPayment) -> None:
    """Shrink: the payment that `find` finds last is the smallest, or `first` is."""
    _Shrinking(encoder.source, first, find).pin(encoder)


class _Shrinking:
    def __init__(self, source: PaymentSource, first: WitnessReader, find: FindPayment) -> None:
        self.reader = first
        self._source = source
        self._find = find
        self._kept: list[Formula] = []

    def pin(self, encoder: Encoder) -> None:
        source = encoder.source
        if source.count is not None:
            self._first_of(source.count == size for size in range(TRANSACTIONS + 1))
        terms = [*_terms(encoder, self.reader)]
        for each in reversed(terms):
            if not z3.is_true(each.there):
                self._first_of([z3.Not(each.there), each.there])
        for kind in source.entries.values():
            self._least(kind)
        for _, _, found in encoder.lists:
            self._first_of([z3.Not(found), found])
        for exists, rate in encoder.rates.values():
            if not self._first_of([z3.Not(exists), rate == 10**RATE_SCALE]):
                self._least(rate)
        for each in terms:
            if not isinstance(each.type, WITHOUT_VALUE) and self.reader.holds(each.there):
                self._smallest(each)
        if encoder.score is not None:
            score = encoder.score.value
            if not self._wish(score == 0):
                self._least(score)

    def _wish(self, formula: Formula) -> bool:
        """Keep a wish if it can be had; return whether it can."""
        if not self.reader.holds(formula):
            found = self._find([*self._kept, formula])
            if found is None:
                return False
            self.reader = found
        self._kept.append(formula)
        return True

    def _first_of(self, wishes: Iterable[Formula]) -> bool:
        return any(self._wish(each) for each in wishes)

    def _smallest(self, term: SmtTerm) -> None:
        value = term.value
        match term.type:
            case t.Boolean():
                self._first_of([z3.Not(value), value])
            case t.String(choices=None):
                self._shortest(value)
            case t.String(choices=choices):
                known = choices or ()
                usual = [value == known.index(each) for each in _USUAL if each in known]
                if not self._first_of(usual):
                    self._least(value)
            case t.Ip():
                if not self._wish(value == _EXAMPLE):
                    self._least(value)
            case t.Instant():
                usual_time = self._usual_time(value)
                if not self._wish(value == usual_time):
                    self._wish(clock.within_span(value))
                    self._least(value - usual_time)
            case t.Duration():
                self._wish(value % _MINUTE == 0)
                self._least(value)
            case t.Number(scale=None):
                if not self._first_of(value == size for size in _ROUND):
                    self._least_real(value)
            case t.Number():
                if not self._first_of(value == size for size in _ROUND):
                    self._least(value)

    def _usual_time(self, value: Formula) -> Formula:
        """Return noon for the payment's time, and that time for all others."""
        own = self._source.fields.get(("timestamp",))
        return NOON if own is None or value.eq(own.value) else own.value

    def _least(self, value: Formula) -> None:
        """Minimise a whole number's distance from zero by bisection; positive if possible."""
        size = value if self._wish(value >= 0) else -value
        low, high = 0, self.reader.number(size)
        while low < high:
            middle = (low + high) // 2
            found = self._find([*self._kept, size <= middle])
            if found is None:
                low = middle + 1
            else:
                self.reader, high = found, found.number(size)
        self._kept.append(size == high)

    def _least_real(self, value: Formula) -> None:
        for parts in _PARTS:
            whole = z3.Int(f"{parts} * {value.sexpr()}")
            if self._wish(value * parts == z3.ToReal(whole)):
                self._least(whole)
                return

    def _shortest(self, value: Formula) -> None:
        length = z3.Length(value)
        if not self._first_of(length == size for size in _LENGTHS):
            self._least(length)
        long = self.reader.number(length)
        if long > _SPELT or self._first_of(value == z3.StringVal(sign * long) for sign in _SIGNS):
            return
        self._wish(z3.InRe(value, z3.Star(z3.Range(" ", "~"))))
        for place in range(long):
            sign = z3.SubString(value, place, 1)
            if not self._first_of(sign == z3.StringVal(each) for each in _SIGNS):
                self._least(z3.StrToCode(sign))


def _terms(encoder: Encoder, reader: WitnessReader) -> Iterator[SmtTerm]:
    """The terms of the payment, its history and the account's tables."""
    source = encoder.source
    yield from (term for path, term in source.fields.items() if path != CARD_FINGERPRINT)
    yield from source.headers.values()
    yield from source.entry_values.values()
    for (_, index), term in source.elements.items():
        if index < reader.number(source.count):
            yield term
    for _, term, _ in encoder.histories.values():
        yield term
    for _, _, row in encoder.rows:
        yield row
