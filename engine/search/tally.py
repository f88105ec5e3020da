"""What became of a set of payments, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from tollkeeper.engine.search.outcomes import OUTCOME_VALUES, outcome_names
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.terms import Facet


class Tally(Struct, frozen=True):
    """How many payments, and of them by action, status and label; what is not there is 0."""

    payments: int
    actions: Mapping[str, int]
    statuses: Mapping[str, int]
    labels: Mapping[str, int]


class Tallying:
    """Counts payments of one block after the other."""

    def __init__(self, index: AccountIndex) -> None:
        self._index = index
        self._total = 0
        self._counts: Counter[tuple[Facet, str]] = Counter()

    def add(self, block: int, members: int) -> None:
        """Counts a set of a block."""
        self._total += members.bit_count()
        for facet, names in OUTCOME_VALUES:
            having = self._index.facet(facet, block)
            for name in names:
                own = having.get(self._index.value(facet, name))
                if own is not None:
                    self._counts[facet, name] += (members & own).bit_count()

    def tally(self, outcomes: bytes | bytearray = b"") -> Tally:
        """Of all that was counted, and of payments that stand by themselves, each with its byte."""
        counts = self._counts.copy()
        for byte, count in Counter(outcomes).items():
            for named in outcome_names(byte):
                counts[named] += count
        return Tally(
            self._total + len(outcomes),
            *({name: counts[facet, name] for name in names} for facet, names in OUTCOME_VALUES),
        )
