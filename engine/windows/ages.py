"""`age` and `interval`: how long ago a group was first or last seen, over all that is kept."""

from __future__ import annotations

from tollkeeper.engine.windows.contract import Key, SeriesPlan, Window
from tollkeeper.engine.windows.elements import Grouped, group_of, values_in
from tollkeeper.engine.windows.moments import Moments


class Ages:
    """One series' `age` and `interval`, by the moments at which its groups were seen."""

    def __init__(self, plan: SeriesPlan, moments: Moments, up_to: int) -> None:
        self.plan = plan
        self.moments = moments
        self.up_to = up_to

    def change(self, time: int, old: Grouped | None, new: Grouped | None) -> None:
        """Takes out the record of event time `time` as known before, takes in the new."""
        was_seen = None if old is None or not values_in(self.plan, old.state) else old.group
        is_seen = None if new is None or not values_in(self.plan, new.state) else new.group
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
