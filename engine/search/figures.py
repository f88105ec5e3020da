"""Figures: what was decided and became of it, by time and by one dimension, each an exact count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.search.blocks import sliceable, stretch
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import sum_of
from tollkeeper.engine.search.outcomes import OUTCOME_VALUES
from tollkeeper.engine.search.reading import AccountIndex, Selection
from tollkeeper.engine.search.spans import Every, TimeSpan, spans, spans_of_block
from tollkeeper.engine.search.tally import Tally
from tollkeeper.engine.search.terms import Facet

Dimension: TypeAlias = Literal[
    "action", "status", "label", "rule", "condition", "version", "merchant", "currency"
]
MOST_VALUES = 200
"""How many values of a dimension one answer has: those with the most payments."""


class Figure(Struct, frozen=True):
    """The payments that arrived from `start` (µs) to before `end`, and have the dimension's value
    `by`; `money` is what they amount to by currency, in hundredths, where it was asked for.
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
    """By time, then by the values of `by` that have any payments, most first.

    Spans without payments are there where there is no dimension.
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


class _Counting:
    """Counts by span and value, block after block."""

    def __init__(self, index: AccountIndex, by: Dimension | None, money: bool) -> None:
        self._index = index
        self._by = None if by is None else Facet[by.upper()]
        self._money = money
        self._counted = [
            (facet, name, index.value(facet, name))
            for facet, names in OUTCOME_VALUES
            for name in names
        ]
        self._currencies = index.names(Facet.CURRENCY) if money else {}
        self._counts: dict[tuple[int, int], list[int]] = {}
        self._sums: defaultdict[tuple[int, int, str], int] = defaultdict(int)

    def take(self, block: int, members: int, asked: list[TimeSpan]) -> None:
        index = self._index
        sets = [sliceable(index.members(facet, value, block)) for facet, _, value in self._counted]
        slices = self._slices(block) if self._money else {}
        values = [(value, sliceable(having)) for value, having in self._values(block, members)]
        for number, low, high in spans_of_block(asked, block):
            pieces = [stretch(each, low, high) for each in sets]
            amounts = {
                name: (
                    stretch(own, low, high),
                    [(bit, stretch(each, low, high)) for bit, each in bits],
                )
                for name, (own, bits) in slices.items()
            }
            for value, having in values:
                piece = stretch(having, low, high)
                if piece:
                    self._count(number, value, piece, pieces)
                    self._add(number, value, piece, amounts)

    def figures(self, asked: list[TimeSpan]) -> list[Figure]:
        if self._by is None:
            kept, names = [_EVERY_VALUE], {}
        else:
            totals: defaultdict[int, int] = defaultdict(int)
            for (_, value), counts in self._counts.items():
                totals[value] += counts[0]
            kept = sorted(totals, key=lambda value: (-totals[value], value))[:MOST_VALUES]
            names = {
                value: str(value) if self._by is Facet.VERSION else name or "none"
                for value, name in self._index.names(self._by).items()
            }
            names |= {_NO_VALUE: "none"}
        nothing = [0] * (1 + len(self._counted))
        return [
            Figure(
                span.start,
                span.end,
                None if self._by is None else names.get(value, str(value)),
                self._tally(self._counts.get((number, value), nothing)),
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

    def _values(self, block: int, members: int) -> Iterator[tuple[int, int]]:
        if self._by is None:
            yield _EVERY_VALUE, members
            return
        left = members
        for value, having in self._index.facet(self._by, block).items():
            left &= ~having
            if members & having:
                yield value, members & having
        if left:
            yield _NO_VALUE, left

    def _slices(self, block: int) -> dict[str, tuple[bytes, list[tuple[int, bytes]]]]:
        """By currency its payments, and of all payments those whose amount has each bit."""
        bits = [
            (bit, sliceable(each)) for bit, each in self._index.facet(Facet.AMOUNT, block).items()
        ]
        return {
            self._currencies[value]: (sliceable(members), bits)
            for value, members in self._index.facet(Facet.CURRENCY, block).items()
        }

    def _count(self, number: int, value: int, piece: int, pieces: list[int]) -> None:
        counts = self._counts.setdefault((number, value), [0] * (1 + len(pieces)))
        counts[0] += piece.bit_count()
        for position, each in enumerate(pieces, start=1):
            counts[position] += (piece & each).bit_count()

    def _add(
        self,
        number: int,
        value: int,
        piece: int,
        amounts: dict[str, tuple[int, list[tuple[int, int]]]],
    ) -> None:
        for name, (own, bits) in amounts.items():
            paid = piece & own
            if paid:
                self._sums[number, value, name] += sum(
                    (paid & each).bit_count() << bit for bit, each in bits
                )

    def _tally(self, counts: list[int]) -> Tally:
        found = dict(zip(((f, n) for f, n, _ in self._counted), counts[1:], strict=True))
        return Tally(
            counts[0],
            *({name: found[facet, name] for name in names} for facet, names in OUTCOME_VALUES),
        )


_EVERY_VALUE = -1
_NO_VALUE = -2


def money_of(index: AccountIndex, block: int, members: int) -> dict[str, int]:
    """What payments of a block amount to by currency, in hundredths."""
    names = index.names(Facet.CURRENCY)
    amounts = index.facet(Facet.AMOUNT, block)
    return {
        names[value]: sum_of(amounts, members & having)
        for value, having in index.facet(Facet.CURRENCY, block).items()
        if members & having
    }
