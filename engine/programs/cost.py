"""What an aggregate over history makes the service keep (docs/sizing.md measures it)."""

from __future__ import annotations

from typing import NamedTuple

from tollkeeper.engine.instants import HOUR
from tollkeeper.grammar import program as p

KEPT_LONGER = 25 * HOUR
"""What comes late is still counted where it belongs, and clocks differ."""

_FAMILIES = {"distinct": "distinct", "sum": "sum", "avg": "sum", "min": "sum", "max": "sum"}
_BYTES = {"count": (145, 8.5), "sum": (233, 48.6), "distinct": (201, 16.6)}


class SeriesCost(NamedTuple):
    """`reach` in microseconds; the bytes of a key with one record, and of each further one.

    `family` names the row of the page.
    """

    family: str
    reach: int
    bytes_a_key: float
    bytes_a_record: float


def series_cost(history: p.History) -> SeriesCost | None:
    """What its series keeps in memory; None for one that looks at all of the history, on disk."""
    if history.over is None:
        return None
    family = _FAMILIES.get(history.function, "count")
    return SeriesCost(family, history.over + KEPT_LONGER, *_BYTES[family])
