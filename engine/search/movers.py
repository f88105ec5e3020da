"""What changed most: values with many more payments than in the same span of the four weeks before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    is_list,
    members_listed,
    numbers_below,
    numbers_from,
    unpack,
)
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.tally import Tally, Tallying
from tollkeeper.engine.search.terms import NAMED, Facet, entities_of, read_facts

By: TypeAlias = Literal[
    "bin", "network", "ip", "device", "card", "user", "email", "merchant", "condition", "rule"
]
EVERY_BY: tuple[By, ...] = get_args(By)
WEEKS = 4
_WEEK = 7 * 24 * HOUR
_CANDIDATES = 100
_LOOKED_AT = 1_000


class Mover(Struct, frozen=True):
    """`usual` is the mean of the same span in each of the four weeks before."""

    by: By
    value: str
    payments: int
    usual: float
    tally: Tally


def movers(
    index: AccountIndex, dimensions: tuple[By, ...], since: int, until: int, limit: int
) -> list[Mover]:
    """The values whose payments from `since` to before `until` (µs) are the least usual.

    What is usual makes up for chance: by how many standard deviations of a Poisson count a value
    lies beyond its mean, so that 40 after 2 come before 3 after none. Of each block's values and
    dimension the `_LOOKED_AT` with the most payments are looked at: none that moved much is another.
    """
    now = _stretch(index, since, until)
    weeks = [
        _stretch(index, since - week * _WEEK, until - week * _WEEK) for week in range(1, WEEKS + 1)
    ]
    found = list[Mover]()
    for by, value, usual in _ranked(index, dimensions, now, weeks):
        if len(found) == limit:
            break
        facet = Facet[by.upper()]
        sets = _sets(index, facet, value, now)
        name = _name(index, facet, value, sets)
        if name is not None:
            counting = Tallying(index)
            for block, members in sets.items():
                counting.add(block, members)
            counted = counting.tally()
            found.append(Mover(by, name, counted.payments, usual, counted))
    return found


class _Stretch(NamedTuple):
    """Payments from the sequence number `first` to before `beyond`, and their blocks."""

    first: int
    beyond: int
    blocks: list[int]

    def size_in(self, block: int, stored: bytes) -> int:
        """How many of a stored set lie in it."""
        if is_list(stored):
            base = block << SHIFT
            return len(
                members_listed(stored, max(self.first - base, 0), min(self.beyond - base, SIZE))
            )
        return self.of(block, unpack(stored)).bit_count()

    def size(self, stored: Mapping[int, bytes]) -> int:
        """How many of a value's stored sets, by their blocks, lie in it."""
        return sum(self.size_in(block, stored[block]) for block in self.blocks if block in stored)

    def of(self, block: int, members: int) -> int:
        """Those of a set that lie in it."""
        return members & numbers_from(block, self.first) & numbers_below(block, self.beyond)


def _stretch(index: AccountIndex, since: int, until: int) -> _Stretch:
    first, beyond = index.sequence_at(since, 0), min(index.sequence_at(until, 0), index.last + 1)
    return _Stretch(first, beyond, index.blocks(first, beyond))


def _most_counted(index: AccountIndex, facet: Facet, stretch: _Stretch) -> Counter[int]:
    """By value, how many payments of a stretch have it, of the commonest values of its blocks."""
    counts: Counter[int] = Counter()
    for block in stretch.blocks:
        for value, stored in index.commonest(facet, block, _LOOKED_AT):
            counts[value] += stretch.size_in(block, stored)
    return +counts


def _ranked(
    index: AccountIndex, dimensions: tuple[By, ...], now: _Stretch, weeks: Sequence[_Stretch]
) -> Iterator[tuple[By, int, float]]:
    """The values with what is usual of them, the least usual first.

    None surprises by more than its payments, as if none were usual. So the weeks are read of a value
    only once no other that was read surprises by more than that.
    """
    counted = [
        (payments, by, value)
        for by in dimensions
        for value, payments in _most_counted(index, Facet[by.upper()], now).most_common(_CANDIDATES)
    ]
    unread = sorted(
        (payments, -place, by, value) for place, (payments, by, value) in enumerate(counted)
    )
    blocks = sorted({block for week in weeks for block in week.blocks})
    read: list[tuple[float, int, float, int, By, int]] = []
    while unread or read:
        while unread and (not read or unread[-1][0] >= -read[0][0]):
            payments, place, by, value = unread.pop()
            stored = index.stored_in(Facet[by.upper()], value, blocks)
            usual = sum(week.size(stored) for week in weeks) / WEEKS
            if payments > usual:
                surprise = (payments - usual) / sqrt(usual + 1)
                heappush(read, (-surprise, -payments, -usual, -place, by, value))
        if read:
            _, _, usual_, _, by, value = heappop(read)
            yield by, value, -usual_


def _sets(index: AccountIndex, facet: Facet, value: int, stretch: _Stretch) -> dict[int, int]:
    sets = index.members_in(facet, value, stretch.blocks)
    return {block: stretch.of(block, members) for block, members in sets.items()}


def _name(index: AccountIndex, facet: Facet, value: int, sets: dict[int, int]) -> str | None:
    """The value in words: of an entity, as one of its payments has it in the journal."""
    if facet in NAMED:
        return index.names(facet).get(value) or None
    for block, members in sets.items():
        if members:
            sequence = (block << SHIFT) + members.bit_length() - 1
            known = index.tail.known(sequence, index.last)
            texts = (
                []
                if known is None
                else [t for f, t in entities_of(read_facts(known)) if f is facet]
            )
            return next((text for text in texts if index.value(facet, text) == value), None)
    return None
