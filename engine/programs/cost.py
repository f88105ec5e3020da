"""The memory that an aggregate over history costs (docs/sizing.md measures it)."""

from __future__ import annotations

from typing import NamedTuple

from tollkeeper.engine.instants import HOUR
from tollkeeper.grammar import program as p

KEPT_LONGER = 25 * HOUR
"""Records are kept longer than the window, as late ones are counted by their event time."""

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
    """The memory of its series; None for one over all of the history, which is on disk."""
    if history.over is None:
        return None
    family = _FAMILIES.get(history.function, "count")
    return SeriesCost(family, history.over + KEPT_LONGER, *_BYTES[family])
