"""Choose which unusual value to raise the alarm about: the cause of an attack, not a value that its
payments merely share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from tollkeeper.api.console.client import JsonObject

_LOUD = 3
"""A cause has at least this many times its usual payments, and most of them are denied."""
_LEAST = 20
"""Fewer payments than this within an hour are not reported as an attack."""
_NARROW_FIRST = ("card", "device", "ip", "user", "email", "network", "bin", "merchant")
"""Of values with the same payments, blocking the earlier kind affects fewer other payments."""


def find_cause(movers: Iterable[JsonObject], tallies: Sequence[JsonObject]) -> JsonObject | None:
    """Return the mover whose denials most exceed what is expected from all other traffic; None if
    none is loud.

    `tallies` cover all traffic of the same span. A busy merchant's legitimate payments count
    against it, so that the BIN, device or address that is denied there ranks first.
    """
    payments = sum(each["payments"] for each in tallies)
    denied = sum(each["actions"]["deny"] for each in tallies)

    def rank(mover: JsonObject) -> tuple[float, int]:
        # Figures are queried one after another, so their counts may differ slightly.
        others = max(payments - mover["payments"], 0)
        usual = (min(max(denied - denied_of(mover), 0), others) + 1) / (others + 2)
        expected = mover["payments"] * usual
        beyond = (denied_of(mover) - expected) / sqrt(expected * (1 - usual))
        return beyond, -_NARROW_FIRST.index(mover["by"])

    return max(filter(_is_loud, movers), key=rank, default=None)


def denied_of(mover: JsonObject) -> int:
    """Return how many of its payments are denied."""
    return int(mover["tally"]["actions"]["deny"])


def _is_loud(mover: JsonObject) -> bool:
    payments = int(mover["payments"])
    is_unusual = payments >= _LEAST and payments > _LOUD * mover["usual"]
    return is_unusual and denied_of(mover) >= payments / 2
