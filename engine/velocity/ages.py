"""`age`, `interval` and `first`: when a group was first or last seen, over all that is kept."""

from __future__ import annotations

from typing import Any

from tollkeeper.engine.velocity.contract import AggregateFunction, Group, SeriesPlan, Window
from tollkeeper.engine.velocity.first_seen import Moments


class Ages:
    """One series' `age`, `interval` and `first`, by the moments at which its groups were seen."""

    def __init__(self, plan: SeriesPlan, moments: Moments, up_to: int) -> None:
        self.plan = plan
        self.moments = moments
        self.up_to = up_to

    def put(self, time: int, group: Group, _value: Any) -> None:
        """Takes in one element of event time `time` (µs)."""
        self.moments.add(group, time)

    def take(self, time: int, group: Group, _value: Any) -> None:
        """Takes out one element, if it is there."""
        self.moments.remove(group, time)

    def read(self, window: Window, group: Group, at: int) -> int | None:
        """A duration (µs) from the first or the latest moment not after `at`, or whether none is."""
        return read_ages(self.moments, window.function, group, at)


def read_ages(moments: Moments, function: AggregateFunction, group: Group, at: int) -> int | None:
    """What `function` makes of the moments of a group, as of event time `at` (µs)."""
    if function == "interval":
        latest = moments.latest(group, at)
        return None if latest is None else at - latest
    first = moments.first(group)
    is_new = first is None or first > at
    if function == "first":
        return is_new
    return None if first is None or is_new else at - first
