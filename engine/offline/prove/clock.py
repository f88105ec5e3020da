"""Encode hours and weekdays in a time zone: within the years of a proof, by spans with one offset
each.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import z3

from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.terms import Formula, SmtTerm
from tollkeeper.engine.offline.zone_offsets import zone_offsets
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import lift
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_FIRST, _END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
"""A zone's offsets are part of the formula from the first of these times to before the last."""
_WEEKDAY = t.String(functions.WEEKDAYS)
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
    # 0 is Monday.
    exact = (local / HOUR) % 24 if is_hour else (local / DAY + _THURSDAY) % 7
    inside = z3.And(found.value == exact, z3.Implies(instant.there, found.there))
    encoder.assume(z3.Implies(within_span(instant.value), inside))
    encoder.hint(z3.Implies(instant.there, within_span(instant.value)))
    return found


def within_span(instant: Formula) -> Formula:
    return z3.And(instant >= to_microseconds(_FIRST), instant < to_microseconds(_END))


def _local(instant: Formula, zone: ZoneInfo) -> Formula:
    """The instant shifted by the zone's offset at that time."""
    bounds, (first, *later) = zone_offsets(zone, _FIRST, _END)
    shift = z3.IntVal(first)
    for since, offset in zip(bounds, later, strict=True):
        shift = z3.If(instant >= since, offset, shift)
    return instant + shift


def _zone(node: p.Call) -> str:
    named = [each.value for each in node.arguments[1:] if isinstance(each, p.Constant)]
    return str(named[0]) if named else "UTC"
