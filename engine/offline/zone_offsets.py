"""Offsets of time zones as tables, for what can't call `zoneinfo`: a solver, and SQL."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

_DAY_S = 86_400


@lru_cache(maxsize=64)
def zone_offsets(
    zone: ZoneInfo, first: datetime, last: datetime
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The instants (µs) at which a zone's offset (µs) changes, and the offsets between them."""
    begin, end = int(first.timestamp()), int(last.timestamp())
    bounds, offsets = [], [_offset(zone, begin)]
    for before, after in pairwise(range(begin, end + _DAY_S, _DAY_S)):
        if _offset(zone, after) != offsets[-1]:
            while after - before > 1:
                middle = (before + after) // 2
                if _offset(zone, middle) == offsets[-1]:
                    before = middle
                else:
                    after = middle
            bounds.append(after * 1_000_000)
            offsets.append(_offset(zone, after))
    return tuple(bounds), tuple(offsets)


def _offset(zone: ZoneInfo, seconds: int) -> int:
    there = datetime.fromtimestamp(seconds, zone).utcoffset()
    assert there is not None
    return round(there.total_seconds() * 1_000_000)
