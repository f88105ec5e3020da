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


def tally(index: AccountIndex, sets: Iterable[tuple[int, int]]) -> Tally:
    """Of payments given as blocks with the sets of those meant."""
    total = 0
    counts: dict[tuple[Facet, str], int] = Counter()
    values = [
        (facet, name, index.value(facet, name)) for facet, names in _COUNTED for name in names
    ]
    for block, members in sets:
        total += members.bit_count()
        for facet, name, value in values:
            counts[facet, name] += (members & index.members(facet, value, block)).bit_count()
    return Tally(
        total,
        *({name: counts[facet, name] for name in names} for facet, names in _COUNTED),
    )
