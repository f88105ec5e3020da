"""Instants are carried as microseconds since the epoch, and shown as RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(instant: datetime) -> int:
    """Microseconds from 1970-01-01T00:00:00Z to `instant`, which has an offset."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The instant `microseconds` after 1970-01-01T00:00:00Z, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND
