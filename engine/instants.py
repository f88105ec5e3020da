"""Instants: microseconds since the epoch inside the engine, text of ISO 8601 outside of it."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeAlias

import msgspec

MINUTE = 60_000_000
"""In µs, as every length of time in the engine."""
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_S = 86_400


Rfc3339: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""An instant as the decoder of JSON reads it: RFC 3339, with seconds and an offset."""

_LONGEST = 64
_OFFSET = r"(?P<offset>Z|[+-]\d\d(?::?\d\d)?)"
_FRACTION = r"(?:[.,](?P<fraction>\d+))?"
_EXTENDED = (
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ]"
    rf"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d){_FRACTION})?"
)
_BASIC = (
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T"
    rf"(?P<hour>\d\d)(?P<minute>\d\d)(?:(?P<second>\d\d){_FRACTION})?"
)
_FORMS = tuple(re.compile(form + _OFFSET, re.IGNORECASE | re.ASCII) for form in (_EXTENDED, _BASIC))
"""ISO 8601's extended and basic form of a calendar date and a time of day with an offset."""


class BeyondCalendarError(ValueError):
    """An instant that UTC's calendar does not have."""


def now() -> int:
    """µs since the epoch."""
    return time.time_ns() // 1000


def read_iso_8601(text: str) -> datetime:
    """The instant that `text` writes in ISO 8601's extended or basic form (docs/api.md, "Time"), with
    its offset.

    Raises `ValueError` for any other text: `BeyondCalendarError` for an instant that UTC's calendar does
    not have.
    """
    found = next(filter(None, (form.fullmatch(text[: _LONGEST + 1]) for form in _FORMS)), None)
    if found is None or len(text) > _LONGEST:
        raise ValueError("this is no instant of ISO 8601")
    second = found["second"] or "00"
    fraction = f".{found['fraction']}" if found["fraction"] else ""
    offset = found["offset"].upper()
    if offset != "Z":
        offset = f"{offset[:3]}:{offset[3:].removeprefix(':') or '00'}"
    day = f"{found['year']}-{found['month']}-{found['day']}"
    time = f"{found['hour']}:{found['minute']}:{second}{fraction}"
    try:
        instant: datetime = msgspec.convert(f"{day}T{time}{offset}", Rfc3339)
        instant.astimezone(UTC)
    except msgspec.ValidationError:
        raise ValueError("this is no date and time of the calendar") from None
    except OverflowError:
        raise BeyondCalendarError(
            "this is beyond the years 1 to 9999 of the calendar in UTC"
        ) from None
    return instant


try:
    from tollkeeper.engine._instants import from_microseconds as from_microseconds
    from tollkeeper.engine._instants import to_microseconds as to_microseconds
except ImportError:  # where C can't be built

    def to_microseconds(instant: datetime, /) -> int:
        """Microseconds from 1970-01-01T00:00:00Z to `instant`, which has an offset."""
        since = instant - _EPOCH
        return (since.days * _DAY_S + since.seconds) * 1_000_000 + since.microseconds

    def from_microseconds(microseconds: int, /) -> datetime:
        """The instant `microseconds` after 1970-01-01T00:00:00Z, in UTC."""
        return _EPOCH + microseconds * _MICROSECOND


def show_instant(microseconds: int) -> str:
    """RFC 3339 text in UTC."""
    return from_microseconds(microseconds).isoformat().replace("+00:00", "Z")
