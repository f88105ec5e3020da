"""`age` and `interval`: how long ago a group was first or last seen, over all that is kept."""

from __future__ import annotations

from tollkeeper.engine.windows.contract import Key, SeriesPlan, State, Window
from tollkeeper.engine.windows.elements import elements, group_of
from tollkeeper.engine.windows.moments import Moments


class Ages:
    """One series' `age` and `interval`, by the moments at which its groups were seen."""

    def __init__(self, plan: SeriesPlan, moments: Moments, up_to: int) -> None:
        self.plan = plan
        self.moments = moments
        self.up_to = up_to

    def change(self, time: int, old: State | None, new: State | None) -> None:
        """Takes out the record of event time `time` as known before, takes in the new."""
        old_group, old_values = elements(self.plan, old)
        new_group, new_values = elements(self.plan, new)
        was_seen = old_group if old_values else None
        is_seen = new_group if new_values else None
        if was_seen == is_seen:
            return
        if was_seen is not None:
            self.moments.remove(was_seen, time)
        if is_seen is not None:
            self.moments.add(is_seen, time)

    def read(self, window: Window, key: Key, at: int) -> int | None:
        """A duration (µs) from the first or the latest moment not after `at`."""
        group = group_of(key)
        if window.function == "interval":
            latest = self.moments.latest(group, at)
            return None if latest is None else at - latest
        first = self.moments.first(group)
        return None if first is None or first > at else at - first
