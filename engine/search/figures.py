"""Exact counts of payments, by time and by one dimension: decisions, statuses and labels."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import compress
from operator import add
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.search import settled
from tollkeeper.engine.search.blocks import SIZE, are_members, descending, sliceable, stretch
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import sum_of
from tollkeeper.engine.search.outcomes import OUTCOMES, POSITIONS
from tollkeeper.engine.search.parts import largest_parts, smaller_parts
from tollkeeper.engine.search.reading import (
    ABSENT,
    TOTALLED,
    AccountIndex,
    Selection,
    Total,
    Totals,
)
from tollkeeper.engine.search.settled import numbers_at
from tollkeeper.engine.search.spans import Every, SpanPart, TimeSpan, spans, spans_of_part
from tollkeeper.engine.search.tally import Tally, tally_of
from tollkeeper.engine.search.terms import Facet

Dimension: TypeAlias = Literal[
    "action", "status", "label", "rule", "condition", "version", "merchant", "currency"
]
MOST_VALUES = 200
"""The most values of a dimension in one answer: those with the most payments."""


class Figure(Struct, frozen=True):
    """The payments that arrived from `start` (µs) to before `end` and have the value `by` of the
    dimension. `money` is their amounts by currency, in hundredths, if the question wants them.
    """

    start: int
    end: int
    by: str | None
    tally: Tally
    money: Mapping[str, int]


def figures(
    index: AccountIndex,
    wanted: Filter,
    since: int,
    until: int,
    every: Every | None,
    zone: str,
    by: Dimension | None,
    money: bool,
) -> list[Figure]:
    """Return figures by time, then by value of `by`, those with the most payments first.

    Without a dimension, time spans without payments are included.
    """
    asked = spans(index, since, until, every, zone)
    facet = None if by is None else Facet[by.upper()]
    counting = _Counting(index, facet, money)
    selection = Selection(index, replace(wanted, since=None, until=None))
    selection.first, selection.end = asked[0].first, asked[-1].beyond

    def kept_of_span(part: int) -> tuple[Totals, int] | None:
        numbers = [number for number, _, _ in spans_of_part(asked, part)]
        kept = selection.totals(part, facet) if len(numbers) == 1 else None
        return None if kept is None else (kept, numbers[0])

    for part, kept in largest_parts(selection.blocks(), kept_of_span):
        if kept is not None:
            counting.add(*kept)
        elif members := selection.members(part):
            counting.take(part, members, list(spans_of_part(asked, part)))
    return counting.figures(asked)


def totals_of_part(index: AccountIndex, part: int) -> Iterator[tuple[Facet, Totals]]:
    """By each facet that totals are kept of, those of all payments of a block or bundle."""
    for facet in TOTALLED:
        counting = _Counting(index, facet, money=True)
        counting.take_part(part, facet)
        yield facet, counting.totals()


class _Counting:
    """Counts payments by span and value, block after block.

    Few payments are counted one at a time, from their outcome bytes; many by intersecting the sets
    of the block, span by span.
    """

    def __init__(self, index: AccountIndex, by: Facet | None, money: bool) -> None:
        self._index = index
        self._by = by
        self._money = money
        # The number of payments, then the number with each of `OUTCOMES`.
        self._counts: defaultdict[tuple[int, int], list[int]]
        self._counts = defaultdict(_NOTHING.copy)
        # By currency, what they amount to.
        self._sums: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)

    def add(self, totals: Totals, number: int) -> None:
        """Adds what is kept of a block to the span of a number."""
        for value, total in totals.items():
            of = number, _EVERY_VALUE if self._by is None else value
            self._counts[of] = [*map(add, self._counts[of], total.counts)]
            if self._money:
                self._sums[of].update(total.money)

    def take_part(self, part: int, facet: Facet) -> None:
        """Counts all payments of a block; those of a bundle from what is kept of its parts."""
        smaller = smaller_parts(part)
        if not smaller:
            self.take(part, self._index.members(Facet.PAYMENT, 0, part), [(0, 0, SIZE)])
        for each in smaller:
            if kept := self._index.totals(facet, each):
                self.add(kept, 0)
            else:
                self.take_part(each, facet)

    def take(self, block: int, members: int, stretches: list[SpanPart]) -> None:
        """Counts a set of a block, all of it within these parts of it."""
        few, many = [], []
        for value, having in self._values(block, members):
            if having.bit_count() <= settled.FEW_MEMBERS:
                few.append((value, [*descending(0, having)][::-1]))
            else:
                many.append((value, _cut(having, stretches)))
        if few:
            self._take_few(block, few, stretches)
        if many:
            self._take_many(block, many, stretches)

    def _values(self, block: int, members: int) -> Iterator[tuple[int, int]]:
        if self._by is None:
            yield _EVERY_VALUE, members
            return
        left = members
        for value, having in self._index.facet(self._by, block).items():
            own = members & having
            if own:
                left &= ~own
                yield value, own
        if left:
            yield ABSENT, left

    def _take_few(
        self, block: int, few: list[tuple[int, list[int]]], stretches: list[SpanPart]
    ) -> None:
        index = self._index
        outcomes = index.outcomes_of(block)
        currencies = index.stored(Facet.CURRENCY, block) if self._money else {}
        amounts = index.stored(Facet.AMOUNT, block) if self._money else {}
        # Each payment's amount is read once, however many values it is counted for.
        every = sorted({bit for _, bits in few for bit in bits})
        paid = dict(zip(every, numbers_at(amounts, every), strict=True))
        currency_of = {
            bit: currency
            for currency, stored in currencies.items()
            for bit in compress(every, are_members(stored, every))
        }
        for value, bits in few:
            for number, low, high in stretches:
                first, beyond = bisect_left(bits, low), bisect_left(bits, high)
                if first == beyond:
                    continue
                counts = self._counts[number, value]
                counts[0] += beyond - first
                for bit in bits[first:beyond]:
                    for position in POSITIONS[outcomes[bit]]:
                        counts[position] += 1
                    if bit in currency_of:
                        self._sums[number, value][currency_of[bit]] += paid[bit]

    def _take_many(
        self, block: int, many: list[tuple[int, list[int]]], stretches: list[SpanPart]
    ) -> None:
        index = self._index
        sets = [
            _cut(index.facet(facet, block).get(index.value(facet, name), 0), stretches)
            for facet, name in OUTCOMES
        ]
        amounts = self._slices(block, stretches) if self._money else []
        for place, (number, _, _) in enumerate(stretches):
            pieces = [(each, cut[place]) for each, cut in enumerate(sets, start=1) if cut[place]]
            for value, cut in many:
                piece = cut[place]
                if not piece:
                    continue
                counts = self._counts[number, value]
                counts[0] += piece.bit_count()
                for each, having in pieces:
                    counts[each] += (piece & having).bit_count()
                for currency, own, bits in amounts:
                    paid = piece & own[place]
                    if paid:
                        self._sums[number, value][currency] += sum(
                            (paid & having[place]).bit_count() << bit for bit, having in bits
                        )

    def _slices(
        self, block: int, stretches: list[SpanPart]
    ) -> list[tuple[int, list[int], list[tuple[int, list[int]]]]]:
        """For each currency, the spans' payments and, for each bit of the amount, the spans'
        payments that have it.
        """
        bits = [
            (bit, _cut(having, stretches))
            for bit, having in self._index.facet(Facet.AMOUNT, block).items()
        ]
        return [
            (value, _cut(having, stretches), bits)
            for value, having in self._index.facet(Facet.CURRENCY, block).items()
        ]

    def totals(self) -> Totals:
        """Return the totals by value, over all spans."""
        counted: defaultdict[int, list[int]] = defaultdict(_NOTHING.copy)
        paid: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for (number, value), counts in self._counts.items():
            counted[value] = [*map(add, counted[value], counts)]
            paid[value].update(self._sums[number, value])
        return {value: Total(counts, dict(paid[value])) for value, counts in counted.items()}

    def figures(self, asked: list[TimeSpan]) -> list[Figure]:
        if self._by is None:
            kept, names = [_EVERY_VALUE], {}
        else:
            totals = self.totals()
            kept = sorted(totals, key=lambda value: (-totals[value].counts[0], value))
            names = {
                value: str(value) if self._by is Facet.VERSION else name or "none"
                for value, name in self._index.names(self._by).items()
            }
            names |= {ABSENT: "none"}
        currencies = self._index.names(Facet.CURRENCY) if self._money else {}
        return [
            Figure(
                span.start,
                span.end,
                None if self._by is None else names.get(value, str(value)),
                tally_of(self._counts.get((number, value), _NOTHING)),
                {
                    name: self._sums[number, value][currency]
                    for currency, name in currencies.items()
                    if currency in self._sums[number, value]
                },
            )
            for number, span in enumerate(asked)
            for value in kept[:MOST_VALUES]
            if self._by is None or (number, value) in self._counts
        ]


def _cut(members: int, stretches: list[SpanPart]) -> list[int]:
    """Split a set of a block into its parts in each stretch."""
    if len(stretches) == 1:
        return [members]
    packed = sliceable(members)
    return [stretch(packed, low, high) for _, low, high in stretches]


_NOTHING = [0] * (1 + len(OUTCOMES))
_EVERY_VALUE = -2


def money_of(index: AccountIndex, block: int, members: int) -> dict[str, int]:
    """Return the amounts of a block's payments by currency, in hundredths."""
    names = index.names(Facet.CURRENCY)
    return {names[value]: amount for value, amount in sums_of(index, block, members).items()}


def sums_of(index: AccountIndex, block: int, members: int) -> dict[int, int]:
    """As `money_of`, the currencies as the index has them."""
    amounts = index.facet(Facet.AMOUNT, block)
    return {
        value: sum_of(amounts, members & having)
        for value, having in index.facet(Facet.CURRENCY, block).items()
        if members & having
    }
