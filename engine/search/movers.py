"""Movers: values with many more payments than in the same span of the four weeks before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush, nlargest
from itertools import islice
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    is_list,
    members_listed,
    numbers_below,
    numbers_from,
    size_within,
    unpack,
)
from tollkeeper.engine.search.commonest import (
    MOST_LOOKED_AT,
    By,
    add_numbers,
    facet_of,
    stored_commonest,
)
from tollkeeper.engine.search.outcomes import count_outcomes
from tollkeeper.engine.search.parts import blocks_within, largest_parts, parts_with
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.tally import Tally, Tallying
from tollkeeper.engine.search.terms import NAMED, Facet, entities_of, read_facts

WEEKS = 4
_WEEK = 7 * 24 * HOUR
_CANDIDATES = 100


class Mover(Struct, frozen=True):
    """`usual` is the mean number of payments over the same span in each of the four weeks before;
    `newest` is the id of the span's newest payment with the value.
    """

    by: By
    value: str
    payments: int
    usual: float
    tally: Tally
    newest: str


class FindMovers(Struct, frozen=True, tag=True):
    """The values whose number of payments from `since` to before `until` (µs) is the most unusual.

    Values are ranked by how many standard deviations of a Poisson count they lie above the usual
    mean, so that 40 after 2 come before 3 after none. Only the `MOST_LOOKED_AT` values with the most
    payments of each block and dimension are considered: a value with few payments can't be very
    unusual.
    """

    dimensions: tuple[By, ...]
    since: int
    until: int
    limit: int

    def answer(self, index: AccountIndex) -> list[Mover]:
        now = _stretch(index, self.since, self.until)
        weeks = [
            _stretch(index, self.since - week * _WEEK, self.until - week * _WEEK)
            for week in range(1, WEEKS + 1)
        ]
        named = (
            (by, value, usual, name, newest.id)
            for by, value, usual in _ranked(index, self.dimensions, now, weeks)
            if (newest := _newest(index, facet_of(by), value, now)) is not None
            and (name := _name(index, facet_of(by), value, newest)) is not None
        )
        found = list(islice(named, self.limit))
        tallies = _tallies(index, [(facet_of(by), value) for by, value, *_ in found], now)
        return [
            Mover(by, name, tally.payments, usual, tally, newest)
            for (by, _, usual, name, newest), tally in zip(found, tallies, strict=True)
        ]


class _Stretch(NamedTuple):
    """The payments from sequence number `first` to before `beyond`, their blocks, and which of those,
    and which bundles, have no others.
    """

    first: int
    beyond: int
    blocks: list[int]
    whole: list[int]

    def within(self, block: int) -> tuple[int, int]:
        """Return the first position of the stretch in a block, and the one after its last."""
        base = block << SHIFT
        return max(self.first - base, 0), min(self.beyond - base, SIZE)

    def has(self, part: int) -> bool:
        """Whether all numbers of a block or bundle lie in the stretch."""
        blocks = blocks_within(part)
        return self.first <= blocks.start << SHIFT and blocks.stop << SHIFT <= self.beyond

    def of(self, block: int, members: int) -> int:
        """Return the members of a set that lie in the stretch."""
        return members & numbers_from(block, self.first) & numbers_below(block, self.beyond)


def _stretch(index: AccountIndex, since: int, until: int) -> _Stretch:
    first, beyond = index.sequence_at(since, 0), min(index.sequence_at(until, 0), index.last + 1)
    found = _Stretch(first, beyond, index.blocks(first, beyond), [])
    for block in found.blocks:
        payments = index.members(Facet.PAYMENT, 0, block)
        if found.of(block, payments) == payments:
            found.whole.append(block)
    bundles = {part for block in found.whole for part in parts_with(block) if part != block}
    found.whole.extend(part for part in bundles if found.has(part))
    return found


def _most_counted(index: AccountIndex, facet: Facet, stretch: _Stretch) -> list[tuple[int, int]]:
    """Return the `_CANDIDATES` values that most payments of the stretch have, and how many, of the most
    common values of each block.
    """
    counts: dict[int, int] = {}
    whole = set(stretch.whole)
    cut: dict[int, Sequence[tuple[int, int]]] = {}

    def kept_of(part: int) -> Sequence[tuple[int, int]] | None:
        return stored_commonest(index, facet, part) if part in whole else None

    for part, kept in largest_parts(stretch.blocks, kept_of):
        if kept is not None:
            add_numbers(counts, kept)
        elif part not in whole and (of_block := stored_commonest(index, facet, part)) is not None:
            cut[part] = of_block
        else:
            low, high = stretch.within(part)
            found = index.commonest(facet, part, MOST_LOOKED_AT)
            add_numbers(
                counts, ((value, size_within(stored, low, high)) for value, stored in found)
            )
    if cut:
        _add_cut(index, facet, stretch, cut, counts)
    return nlargest(_CANDIDATES, counts.items(), key=itemgetter(1))


def _add_cut(
    index: AccountIndex,
    facet: Facet,
    stretch: _Stretch,
    cut: Mapping[int, Sequence[tuple[int, int]]],
    counts: dict[int, int],
) -> None:
    """Add what the stretch has of blocks that it cuts, given what is stored of the whole blocks.

    A value can have no more payments in it than in the block: so only those are read that may come to
    be among the most counted.
    """
    bounds: dict[int, int] = {}
    for of_block in cut.values():
        add_numbers(bounds, of_block)
    most = nlargest(_CANDIDATES, counts.values())
    least = most[-1] if len(most) == _CANDIDATES else 0
    near = [value for value, bound in bounds.items() if counts.get(value, 0) + bound >= least]
    for value, sets in index.stored_of(facet, near, cut).items():
        sizes = (size_within(stored, *stretch.within(block)) for block, stored in sets)
        add_numbers(counts, ((value, sum(sizes)),))


def _ranked(
    index: AccountIndex, dimensions: tuple[By, ...], now: _Stretch, weeks: Sequence[_Stretch]
) -> Iterator[tuple[By, int, float]]:
    """Yield the values with their usual number of payments, the most unusual first.

    A value with n payments can't be more unusual than n after none. So a value's past weeks are
    read only once no value that was already read is more unusual than that.
    """
    counted = [
        (payments, by, value)
        for by in dimensions
        for value, payments in _most_counted(index, facet_of(by), now)
    ]
    unread = sorted(
        (payments, -place, by, value) for place, (payments, by, value) in enumerate(counted)
    )
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for week in weeks:
        for block in week.blocks:
            spans[block].append(week.within(block))
    blocks = sorted(spans)
    read: list[tuple[float, int, float, int, By, int]] = []
    while unread or read:
        while unread and (not read or unread[-1][0] >= -read[0][0]):
            payments, place, by, value = unread.pop()
            stored = index.stored_in(facet_of(by), value, blocks)
            sizes = (
                size_within(of, *span) for block, of in stored.items() for span in spans[block]
            )
            usual = sum(sizes) / WEEKS
            if payments > usual:
                surprise = (payments - usual) / sqrt(usual + 1)
                heappush(read, (-surprise, -payments, -usual, -place, by, value))
        if read:
            _, _, usual_, _, by, value = heappop(read)
            yield by, value, -usual_


def _tallies(
    index: AccountIndex, values: Sequence[tuple[Facet, int]], stretch: _Stretch
) -> list[Tally]:
    """Count the stretch's payments of each value, block by block, as each block's sets are read once.

    Small sets are counted by their payments' outcome bytes.
    """
    tallying = [Tallying(index) for _ in values]
    listed = [bytearray() for _ in values]
    counted: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for place, ((facet, value), counting) in enumerate(zip(values, tallying, strict=True)):
        left = []
        for part, total in largest_parts(
            stretch.blocks, index.totals_in(facet, value, stretch.whole).get
        ):
            if total is None:
                left.append(part)
            else:
                counting.add_counts(total.counts)
        for block, stored in index.stored_in(facet, value, left).items():
            counted[block].append((place, stored))
    for block, sets in counted.items():
        low, high = stretch.within(block)
        outcomes = index.outcomes_of(block)
        for place, stored in sets:
            if is_list(stored):
                listed[place] += bytes(map(outcomes.__getitem__, members_listed(stored, low, high)))
            else:
                tallying[place].add(block, stretch.of(block, unpack(stored)))
    for counting, own in zip(tallying, listed, strict=True):
        counting.add_counts(count_outcomes(own))
    return [counting.tally() for counting in tallying]


def _newest(index: AccountIndex, facet: Facet, value: int, stretch: _Stretch) -> Entry | None:
    """Return the stretch's newest payment of a value, as it is known; None if the journal no longer has
    it.
    """
    for block in stretch.blocks:
        members = stretch.of(block, index.members(facet, value, block))
        if members:
            return index.tail.known((block << SHIFT) + members.bit_length() - 1, index.last)
    return None


def _name(index: AccountIndex, facet: Facet, value: int, payment: Entry) -> str | None:
    """Return the value's name: an entity's is read from a payment of it."""
    if facet in NAMED:
        return index.names(facet).get(value) or None
    texts = (text for of, text in entities_of(read_facts(payment)) if of is facet)
    return next((text for text in texts if index.value(facet, text) == value), None)
