"""Movers: values with many more payments than in the same span of the four weeks before."""

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
    """`usual` is the mean number of payments over the same span in each of the four weeks before."""

    by: By
    value: str
    payments: int
    usual: float
    tally: Tally


def movers(
    index: AccountIndex, dimensions: tuple[By, ...], since: int, until: int, limit: int
) -> list[Mover]:
    """Return the values whose number of payments from `since` to before `until` (µs) is the most
    unusual.

    Values are ranked by how many standard deviations of a Poisson count they lie above the usual
    mean, so that 40 after 2 come before 3 after none. Only the `_LOOKED_AT` values with the most
    payments of each block and dimension are considered: a value with few payments can't be very
    unusual.
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
    """The payments from sequence number `first` to before `beyond`, and their blocks."""

    first: int
    beyond: int
    blocks: list[int]

    def size_in(self, block: int, stored: bytes) -> int:
        """Count the members of a stored set that lie in the stretch."""
        if is_list(stored):
            base = block << SHIFT
            return len(
                members_listed(stored, max(self.first - base, 0), min(self.beyond - base, SIZE))
            )
        return self.of(block, unpack(stored)).bit_count()

    def size(self, stored: Mapping[int, bytes]) -> int:
        """Count the members of a value's stored sets, by block, that lie in the stretch."""
        return sum(self.size_in(block, stored[block]) for block in self.blocks if block in stored)

    def of(self, block: int, members: int) -> int:
        """Return the members of a set that lie in the stretch."""
        return members & numbers_from(block, self.first) & numbers_below(block, self.beyond)


def _stretch(index: AccountIndex, since: int, until: int) -> _Stretch:
    first, beyond = index.sequence_at(since, 0), min(index.sequence_at(until, 0), index.last + 1)
    return _Stretch(first, beyond, index.blocks(first, beyond))


def _most_counted(index: AccountIndex, facet: Facet, stretch: _Stretch) -> Counter[int]:
    """Count the stretch's payments by value, for the most common values of each block."""
    counts: Counter[int] = Counter()
    for block in stretch.blocks:
        for value, stored in index.commonest(facet, block, _LOOKED_AT):
            counts[value] += stretch.size_in(block, stored)
    return +counts


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
    """Return the value's name: an entity's is read from one of its payments in the journal."""
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
