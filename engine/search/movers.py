"""What changed most: values with many more payments than in the same span of the four weeks before."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from math import sqrt
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.search.blocks import SHIFT, SIZE, numbers_below, numbers_from, unpack
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.tally import Tally, TallySets
from tollkeeper.engine.search.terms import NAMED, Facet, entities_of, read_facts

By: TypeAlias = Literal[
    "bin", "network", "ip", "device", "card", "user", "email", "merchant", "condition", "rule"
]
EVERY_BY: tuple[By, ...] = get_args(By)
WEEKS = 4
_WEEK = 7 * 24 * HOUR
_CANDIDATES = 100


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
    lies beyond its mean, so that 40 after 2 come before 3 after none.
    """
    first, beyond = _stretch(index, since, until)
    weeks = [
        _stretch(index, since - week * _WEEK, until - week * _WEEK) for week in range(1, WEEKS + 1)
    ]
    ranked = []
    for by in dimensions:
        facet = Facet[by.upper()]
        for value, payments in _counts(index, facet, first, beyond).most_common(_CANDIDATES):
            usual = sum(_count(index, facet, value, *week) for week in weeks) / WEEKS
            if payments > usual:
                surprise = (payments - usual) / sqrt(usual + 1)
                ranked.append((surprise, payments, usual, by, facet, value))
    ranked.sort(key=lambda each: each[:3], reverse=True)
    tallied, found = TallySets(index), list[Mover]()
    for _, _, usual, by, facet, value in ranked:
        if len(found) == limit:
            break
        sets = _sets(index, facet, value, first, beyond)
        name = _name(index, facet, value, sets)
        if name is not None:
            counted = tallied.tally(sets.items())
            found.append(Mover(by, name, counted.payments, usual, counted))
    return found


def _stretch(index: AccountIndex, since: int, until: int) -> tuple[int, int]:
    return index.sequence_at(since, 0), min(index.sequence_at(until, 0), index.last + 1)


def _counts(index: AccountIndex, facet: Facet, first: int, beyond: int) -> Counter[int]:
    """By value, how many payments of a stretch have it."""
    counts: Counter[int] = Counter()
    for block in index.blocks(first, beyond):
        base = block << SHIFT
        low, high = max(first - base, 0), min(beyond - base, SIZE)
        mask = numbers_from(block, first) & numbers_below(block, beyond)
        for value, stored in index.stored(facet, block):
            if len(stored) == SIZE // 8:
                counted = (unpack(stored) & mask).bit_count()
            else:
                bits = array("H", stored)
                counted = bisect_left(bits, high) - bisect_left(bits, low)
            if counted:
                counts[value] += counted
    return counts


def _sets(index: AccountIndex, facet: Facet, value: int, first: int, beyond: int) -> dict[int, int]:
    sets = index.members_in(facet, value, index.blocks(first, beyond))
    return {
        block: members & numbers_from(block, first) & numbers_below(block, beyond)
        for block, members in sets.items()
    }


def _count(index: AccountIndex, facet: Facet, value: int, first: int, beyond: int) -> int:
    sets = _sets(index, facet, value, first, beyond)
    return sum(members.bit_count() for members in sets.values())


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
