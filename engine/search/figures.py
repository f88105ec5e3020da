"""Exact counts of payments, by time and by one dimension: decisions, statuses and labels."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import compress
from operator import add
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.search import settled
from tollkeeper.engine.search.blocks import SHIFT, are_members, descending, sliceable, stretch
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import sum_of
from tollkeeper.engine.search.outcomes import OUTCOMES, POSITIONS
from tollkeeper.engine.search.reading import AccountIndex, Selection, Totals
from tollkeeper.engine.search.settled import numbers_at
from tollkeeper.engine.search.spans import Every, SpanPart, TimeSpan, spans, spans_of_block
from tollkeeper.engine.search.tally import Tally, tally_of
from tollkeeper.engine.search.terms import Facet

Dimension: TypeAlias = Literal[
    "action", "status", "label", "rule", "condition", "version", "merchant", "currency"
]
MOST_VALUES = 200
"""The most values of a dimension in one answer: those with the most payments."""


class Figure(Struct, frozen=True):
    """The payments that arrived from `start` (µs) to before `end` and have the value `by` of the
    dimension. `money` is their amounts by currency, in hundredths, if they were asked for.
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
    counting = _Counting(index, by, money)
    selection = Selection(index, replace(wanted, since=None, until=None))
    selection.first, selection.end = asked[0].first, asked[-1].beyond
    for block in selection.blocks():
        members = selection.members(block)
        if members:
            counting.take(block, members, asked)
    return counting.figures(asked)


def count_block(index: AccountIndex, block: int) -> Iterator[tuple[Facet, Totals]]:
    """For each dimension, the totals of all payments of a block."""
    members = index.members(Facet.PAYMENT, 0, block)
    whole = TimeSpan(0, 0, block << SHIFT, (block + 1) << SHIFT)
    for by in get_args(Dimension):
        counting = _Counting(index, by, money=False)
        counting.take(block, members, [whole])
        yield Facet[by.upper()], counting.totals()


class _Counting:
    """Counts payments by span and value, block after block.

    Few payments are counted one at a time, from their outcome bytes; many by intersecting the sets
    of the block, span by span.
    """

    def __init__(self, index: AccountIndex, by: Dimension | None, money: bool) -> None:
        self._index = index
        self._by = None if by is None else Facet[by.upper()]
        self._currencies = index.names(Facet.CURRENCY) if money else {}
        # The number of payments, then the number with each of `OUTCOMES`.
        self._counts: defaultdict[tuple[int, int], list[int]]
        self._counts = defaultdict(_NOTHING.copy)
        self._sums: defaultdict[tuple[int, int, str], int] = defaultdict(int)

    def take(self, block: int, members: int, asked: list[TimeSpan]) -> None:
        """Count a set of a block; all of it lies within the spans."""
        stretches = list(spans_of_block(asked, block))
        if len(stretches) == 1 and self._take_all(block, members.bit_count(), stretches[0][0]):
            return
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

    def _take_all(self, block: int, payments: int, number: int) -> bool:
        """Add the block's stored totals. Returns false, having added nothing, unless they cover
        exactly this many payments.
        """
        if self._currencies:
            return False
        totals = self._index.totals(Facet.ACTION if self._by is None else self._by, block)
        if sum(counts[0] for counts in totals.values()) != payments:
            return False
        for value, counts in totals.items():
            of = number, _EVERY_VALUE if self._by is None else value
            self._counts[of] = [*map(add, self._counts[of], counts)]
        return True

    def _values(self, block: int, members: int) -> Iterator[tuple[int, int]]:
        if self._by is None:
            yield _EVERY_VALUE, members
            return
        left = members
        for value, having in self._index.facet(self._by, block).items():
            own = members & having
            if own:
                left ^= own
                yield value, own
        if left:
            yield _NO_VALUE, left

    def _take_few(
        self, block: int, few: list[tuple[int, list[int]]], stretches: list[SpanPart]
    ) -> None:
        index = self._index
        outcomes = index.outcomes_of(block)
        currencies = index.stored(Facet.CURRENCY, block) if self._currencies else {}
        amounts = index.stored(Facet.AMOUNT, block) if self._currencies else {}
        for value, bits in few:
            paid = numbers_at(amounts, bits)
            for number, low, high in stretches:
                first, beyond = bisect_left(bits, low), bisect_left(bits, high)
                if first == beyond:
                    continue
                counts = self._counts[number, value]
                counts[0] += beyond - first
                for bit in bits[first:beyond]:
                    for position in POSITIONS[outcomes[bit]]:
                        counts[position] += 1
                for currency, stored in currencies.items():
                    own = list(
                        compress(paid[first:beyond], are_members(stored, bits[first:beyond]))
                    )
                    if own:
                        self._sums[number, value, self._currencies[currency]] += sum(own)

    def _take_many(
        self, block: int, many: list[tuple[int, list[int]]], stretches: list[SpanPart]
    ) -> None:
        index = self._index
        sets = [
            _cut(index.members(facet, index.value(facet, name), block), stretches)
            for facet, name in OUTCOMES
        ]
        amounts = self._slices(block, stretches) if self._currencies else []
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
                        self._sums[number, value, currency] += sum(
                            (paid & having[place]).bit_count() << bit for bit, having in bits
                        )

    def _slices(
        self, block: int, stretches: list[SpanPart]
    ) -> list[tuple[str, list[int], list[tuple[int, list[int]]]]]:
        """For each currency, the spans' payments and, for each bit of the amount, the spans'
        payments that have it.
        """
        bits = [
            (bit, _cut(having, stretches))
            for bit, having in self._index.facet(Facet.AMOUNT, block).items()
        ]
        return [
            (self._currencies[value], _cut(having, stretches), bits)
            for value, having in self._index.facet(Facet.CURRENCY, block).items()
        ]

    def totals(self) -> Totals:
        """Return the counts by value, over all spans."""
        totals: Totals = defaultdict(lambda: _NOTHING)
        for (_, value), counts in self._counts.items():
            totals[value] = [*map(add, totals[value], counts)]
        return totals

    def figures(self, asked: list[TimeSpan]) -> list[Figure]:
        if self._by is None:
            kept, names = [_EVERY_VALUE], {}
        else:
            totals = self.totals()
            kept = sorted(totals, key=lambda value: (-totals[value][0], value))[:MOST_VALUES]
            names = {
                value: str(value) if self._by is Facet.VERSION else name or "none"
                for value, name in self._index.names(self._by).items()
            }
            names |= {_NO_VALUE: "none"}
        return [
            Figure(
                span.start,
                span.end,
                None if self._by is None else names.get(value, str(value)),
                tally_of(self._counts.get((number, value), _NOTHING)),
                {
                    name: self._sums[number, value, name]
                    for name in self._currencies.values()
                    if (number, value, name) in self._sums
                },
            )
            for number, span in enumerate(asked)
            for value in kept
            if self._by is None or (number, value) in self._counts
        ]


def _cut(members: int, stretches: list[SpanPart]) -> list[int]:
    """Split a set of a block into its parts in each stretch."""
    if len(stretches) == 1:
        return [members]
    packed = sliceable(members)
    return [stretch(packed, low, high) for _, low, high in stretches]


_NOTHING = [0] * (1 + len(OUTCOMES))
_EVERY_VALUE = -1
_NO_VALUE = -2


def money_of(index: AccountIndex, block: int, members: int) -> dict[str, int]:
    """Return the amounts of a block's payments by currency, in hundredths."""
    names = index.names(Facet.CURRENCY)
    amounts = index.facet(Facet.AMOUNT, block)
    return {
        names[value]: sum_of(amounts, members & having)
        for value, having in index.facet(Facet.CURRENCY, block).items()
        if members & having
    }
