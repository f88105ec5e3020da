"""Instants: microseconds since the epoch inside the engine, RFC 3339 text outside of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

HOUR = 3_600_000_000
"""In µs, as every length of time in the engine."""
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(instant: datetime) -> int:
    """Microseconds from 1970-01-01T00:00:00Z to `instant`, which has an offset."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The instant `microseconds` after 1970-01-01T00:00:00Z, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def show_instant(microseconds: int) -> str:
    """RFC 3339 text in UTC."""
    return from_microseconds(microseconds).isoformat().replace("+00:00", "Z")
