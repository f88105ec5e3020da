"""What became of a set of payments, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec import Struct

from tollkeeper.engine.decision import Action
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.labels.label import VERDICTS
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.terms import Facet

ACTIONS: tuple[str, ...] = get_args(Action)
_STATUSES: tuple[str, ...] = get_args(PaymentStatus)
_COUNTED = ((Facet.ACTION, ACTIONS), (Facet.STATUS, _STATUSES), (Facet.LABEL, VERDICTS))


class Tally(Struct, frozen=True):
    """How many payments, and of them by action, status and label; what is not there is 0."""

    payments: int
    actions: Mapping[str, int]
    statuses: Mapping[str, int]
    labels: Mapping[str, int]


class TallySets:
    """What is counted, block by block; a block is read once for all the sets that are tallied."""

    def __init__(self, index: AccountIndex) -> None:
        self._index = index
        self._places = {
            facet: {index.value(facet, name): name for name in names} for facet, names in _COUNTED
        }
        self._blocks: dict[int, list[tuple[Facet, str, int]]] = {}

    def tally(self, sets: Iterable[tuple[int, int]]) -> Tally:
        """Of payments given as blocks with the sets of those meant."""
        total = 0
        counts: Counter[tuple[Facet, str]] = Counter()
        for block, members in sets:
            total += members.bit_count()
            for facet, name, having in self._of(block):
                counts[facet, name] += (members & having).bit_count()
        return Tally(
            total,
            *({name: counts[facet, name] for name in names} for facet, names in _COUNTED),
        )

    def _of(self, block: int) -> list[tuple[Facet, str, int]]:
        found = self._blocks.get(block)
        if found is None:
            found = self._blocks[block] = [
                (facet, names[value], having)
                for facet, names in self._places.items()
                for value, having in self._index.facet(facet, block)
                if value in names
            ]
        return found


def tally(index: AccountIndex, sets: Iterable[tuple[int, int]]) -> Tally:
    """Of payments given as blocks with the sets of those meant."""
    return TallySets(index).tally(sets)
