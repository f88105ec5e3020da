"""Fraudulent payments that belong together: an attack of a thousand payments is one piece of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tollkeeper.engine.instants import HOUR

LINKED_WITHIN = 6 * HOUR
"""Two payments of one entity belong together when no more time (µs) passed between them."""


def incidents(
    arrived: Sequence[int], entities: Sequence[tuple[Any, ...]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of the incident of each payment, given in the order of their arrival (µs)."""
    above = list(range(len(arrived)))

    def root(of: int) -> int:
        while above[of] != of:
            above[of] = above[above[of]]
            of = above[of]
        return of

    latest: dict[tuple[int, Any], int] = {}
    for index, (time, own) in enumerate(zip(arrived, entities, strict=True)):
        for kind, entity in enumerate(own):
            if entity is None:
                continue
            before = latest.get((kind, entity))
            if before is not None and time - arrived[before] <= LINKED_WITHIN:
                above[root(index)] = root(before)
            latest[kind, entity] = index
    return np.array([root(index) for index in range(len(above))], np.int64)
