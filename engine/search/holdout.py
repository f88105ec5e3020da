"""False positives among denials, measured on held-out payments: those that passed though a rule
denied them.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.performance import MATURE, interval
from tollkeeper.engine.search.reading import AccountIndex, Selection
from tollkeeper.engine.search.terms import Facet
from tollkeeper.engine.search.thresholds import split_by_outcome


class FalsePositives(Struct, frozen=True):
    """Of held-out payments, those of legitimate `people`, the `frauds`, and those `unripe`, which
    may still get a label. `share` is people's share of the first two, with its 95 % interval.
    """

    people: int
    frauds: int
    unripe: int
    share: float | None
    low: float | None
    high: float | None


class FindFalsePositives(Struct, frozen=True, tag=True):
    """The outcomes of held-out payments that match a filter; `now` in µs."""

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> FalsePositives:
        ripe_before = index.sequence_at(self.now - MATURE, 0)
        held_out = replace(self.wanted, terms=(*self.wanted.terms, ((Facet.HOLDOUT, 1),)))
        selection = Selection(index, held_out)
        people = frauds = unripe = 0
        for block in selection.blocks():
            members = selection.members(block)
            if members:
                sets = split_by_outcome(index, block, members, ripe_before)
                ours, theirs, waiting = map(int.bit_count, sets)
                people, frauds, unripe = people + ours, frauds + theirs, unripe + waiting
        known = people + frauds
        if not known:
            return FalsePositives(people, frauds, unripe, None, None, None)
        return FalsePositives(people, frauds, unripe, people / known, *interval(people, known))
