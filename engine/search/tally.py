"""Count payments by outcome."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add

from msgspec import Struct

from tollkeeper.engine.search.outcomes import OUTCOME_VALUES, OUTCOMES, OutcomeCounts
from tollkeeper.engine.search.reading import AccountIndex


class Tally(Struct, frozen=True):
    """The number of payments, and how many have each action, status and label; 0 for those without
    any.
    """

    payments: int
    actions: Mapping[str, int]
    statuses: Mapping[str, int]
    labels: Mapping[str, int]


class Tallying:
    """Counts the payments of several blocks."""

    def __init__(self, index: AccountIndex) -> None:
        self._index = index
        self._counts = [0] * (1 + len(OUTCOMES))

    def add(self, block: int, members: int) -> None:
        """Count a set of a block."""
        self.add_counts(count_set(self._index, block, members))

    def add_counts(self, counts: OutcomeCounts) -> None:
        """Add counts that were made elsewhere."""
        self._counts = [*map(add, self._counts, counts)]

    def tally(self) -> Tally:
        """Return the tally of all that was counted."""
        return tally_of(self._counts)


def count_set(index: AccountIndex, block: int, members: int) -> OutcomeCounts:
    """Count a set of a block by outcome."""
    counts = [members.bit_count()]
    for facet, names in OUTCOME_VALUES:
        having = index.facet(facet, block)
        for name in names:
            own = having.get(index.value(facet, name), 0)
            counts.append((members & own).bit_count())
    return counts


def tally_of(counts: OutcomeCounts) -> Tally:
    found = dict(zip(OUTCOMES, counts[1:], strict=True))
    return Tally(
        counts[0],
        *({name: found[facet, name] for name in names} for facet, names in OUTCOME_VALUES),
    )
