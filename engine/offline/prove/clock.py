"""Encode hours and weekdays in a time zone: within the years of a proof, by spans with one offset
each.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import z3

from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.terms import Formula, SmtTerm
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import lift
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_END = datetime(2030, 1, 1, tzinfo=UTC)
"""A zone's offsets are part of the formula from the first of these times to before the last."""
_WEEKDAY = t.String(functions.WEEKDAYS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_THURSDAY = 3


def encode_clock(encoder: Encoder, node: p.Call, instant: SmtTerm) -> SmtTerm:
    """Encode by the zone's offsets within the years of a proof, and by the engine's function
    outside them.
    """
    zone = ZoneInfo(_zone(node))
    local = _local(instant.value, zone)
    is_hour = node.function == "hour"
    kind = node.type if is_hour else _WEEKDAY
    function = functions.hour if is_hour else functions.weekday
    found = encoder.apply(
        f"{node.function}/{zone.key}", [instant], kind, lambda at: lift(function(at, zone), kind)
    )
    exact = _hour(local) if is_hour else _weekday(local)
    inside = z3.And(found.value == exact, z3.Implies(instant.there, found.there))
    encoder.assume(z3.Implies(within_span(instant.value), inside))
    encoder.hint(z3.Implies(instant.there, within_span(instant.value)))
    return found


def within_span(instant: Formula) -> Formula:
    return z3.And(instant >= _microseconds(_FIRST), instant < _microseconds(_END))


def _local(instant: Formula, zone: ZoneInfo) -> Formula:
    """The instant shifted by the zone's offset at that time."""
    *later, (_, first) = reversed(_offsets(zone))
    shift = z3.IntVal(first)
    for since, offset in reversed(later):
        shift = z3.If(instant >= since, offset, shift)
    return instant + shift


def _hour(local_instant: Formula) -> Formula:
    return (local_instant / _HOUR) % 24


def _weekday(local_instant: Formula) -> Formula:
    """0 is Monday."""
    return (local_instant / _DAY + _THURSDAY) % 7


def _zone(node: p.Call) -> str:
    named = [each.value for each in node.arguments[1:] if isinstance(each, p.Constant)]
    return str(named[0]) if named else "UTC"


@cache
def _offsets(place: ZoneInfo) -> tuple[tuple[int, int], ...]:
    """The zone's offsets (µs) with the time (µs) from which each applies, oldest first."""
    found = [(_microseconds(_FIRST), _offset(_FIRST, place))]
    day = _FIRST
    while day < _END:
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
