"""Hours and weekdays in a time zone: within the years of a proof, spans of one offset each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import z3

from tollkeeper.engine.offline.prove.terms import Formula
from tollkeeper.engine.programs.compile.functions import WEEKDAYS
from tollkeeper.grammar import types as t

FIRST = datetime(2025, 1, 1, tzinfo=UTC)
LATEST_INSTANT = datetime(2030, 1, 1, tzinfo=UTC)
"""From the first to before the last, a zone's offsets are part of the formula."""
WEEKDAY = t.String(WEEKDAYS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_THURSDAY = 3


def within_span(instant: Formula) -> Formula:
    return z3.And(instant >= _microseconds(FIRST), instant < _microseconds(LATEST_INSTANT))


def local(instant: Formula, zone: ZoneInfo) -> Formula:
    """The instant shifted by the zone's offset at that time."""
    *later, (_, first) = reversed(_offsets(zone))
    shift = z3.IntVal(first)
    for since, offset in reversed(later):
        shift = z3.If(instant >= since, offset, shift)
    return instant + shift


def hour_term(local_instant: Formula) -> Formula:
    return (local_instant / _HOUR) % 24


def weekday_term(local_instant: Formula) -> Formula:
    """0 is Monday."""
    return (local_instant / _DAY + _THURSDAY) % 7


@cache
def _offsets(place: ZoneInfo) -> tuple[tuple[int, int], ...]:
    """From when on (µs) which offset (µs) is in force, oldest first."""
    found = [(_microseconds(FIRST), _offset(FIRST, place))]
    day = FIRST
    while day < LATEST_INSTANT:
        following = day + timedelta(days=1)
        if _offset(following, place) != _offset(day, place):
            found.append((_microseconds(_change(day, following, place)), _offset(following, place)))
        day = following
    return tuple(found)


def _change(low: datetime, high: datetime, place: ZoneInfo) -> datetime:
    before = _offset(low, place)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        low, high = (middle, high) if _offset(middle, place) == before else (low, middle)
    return high.replace(microsecond=0)


def _offset(at: datetime, place: ZoneInfo) -> int:
    return (at.astimezone(place).utcoffset() or timedelta()) // _MICROSECOND


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND
