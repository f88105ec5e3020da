"""Which of the values that stand out to raise the alarm about: a cause, not where its payments pass
by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from tollkeeper.api.console.client import JsonObject

_LOUD = 3
"""A cause has this many times its usual payments, and is mostly denied."""
_LEAST = 20
"""Fewer payments than these within the hour are no attack that one should be told of."""
_NARROW_FIRST = ("card", "device", "ip", "user", "email", "network", "bin", "merchant")
"""Of values with the same payments, the one that blocks the fewest others."""


def find_cause(movers: Iterable[JsonObject], tallies: Sequence[JsonObject]) -> JsonObject | None:
    """The mover whose denials are the furthest beyond those of all other traffic, None when none is
    loud.

    `tallies` are of all traffic of the movers' span. A busy merchant's honest payments speak
    against it, so that the BIN, device or address that is denied there comes first.
    """
    payments = sum(each["payments"] for each in tallies)
    denied = sum(each["actions"]["deny"] for each in tallies)

    def rank(mover: JsonObject) -> tuple[float, int]:
        # Figures that are asked for one after another may differ by what came between.
        others = max(payments - mover["payments"], 0)
        usual = (min(max(denied - denied_of(mover), 0), others) + 1) / (others + 2)
        expected = mover["payments"] * usual
        beyond = (denied_of(mover) - expected) / sqrt(expected * (1 - usual))
        return beyond, -_NARROW_FIRST.index(mover["by"])

    return max(filter(_is_loud, movers), key=rank, default=None)


def denied_of(mover: JsonObject) -> int:
    """How many of its payments are denied."""
    return int(mover["tally"]["actions"]["deny"])


def _is_loud(mover: JsonObject) -> bool:
    payments = int(mover["payments"])
    is_unusual = payments >= _LEAST and payments > _LOUD * mover["usual"]
    return is_unusual and denied_of(mover) >= payments / 2
