"""Instants as microseconds, in C and in Python: the same for every date of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine import instants
from tollkeeper.tests.builds import both_builds

BUILDS = both_builds(instants.__name__, "tollkeeper.engine._instants")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND

each_build = pytest.mark.parametrize("build", BUILDS, ids=["in use", "in Python"])
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@each_build
@given(st.datetimes(timezones=offsets | st.just(UTC)))
def test_an_instant_is_as_many_microseconds_as_lie_between_it_and_the_epoch(
    build: Any, instant: datetime
) -> None:
    assert build.to_microseconds(instant) == (instant - EPOCH) // MICROSECOND


@each_build
@given(st.integers(FIRST, LAST))
def test_microseconds_become_the_instant_that_they_came_from(build: Any, count: int) -> None:
    instant = build.from_microseconds(count)
    assert instant.tzinfo is UTC
    assert instant == EPOCH + count * MICROSECOND
    assert build.to_microseconds(instant) == count


@each_build
@pytest.mark.parametrize(
    "day", ["0001-01-01", "1600-02-29", "1900-03-01", "2000-02-29", "9999-12-31"]
)
def test_the_calendar_has_its_leap_days(build: Any, day: str) -> None:
    instant = datetime.fromisoformat(f"{day}T23:59:59.999999+00:00")
    assert build.from_microseconds(build.to_microseconds(instant)) == instant


@each_build
@pytest.mark.parametrize("count", [FIRST - 1, LAST + 1, 2**63, -(2**70)])
def test_what_is_beyond_the_calendar_is_no_instant(build: Any, count: int) -> None:
    with pytest.raises(OverflowError):
        build.from_microseconds(count)


@each_build
@pytest.mark.parametrize("sent", [datetime(2026, 1, 15), "2026-01-15", None])  # noqa: DTZ001
def test_what_has_no_offset_is_no_instant(build: Any, sent: Any) -> None:
    with pytest.raises(TypeError):
        build.to_microseconds(sent)


@given(st.datetimes(timezones=offsets))
def test_an_instant_that_is_read_can_always_be_shown(instant: datetime) -> None:
    count = (instant - EPOCH) // MICROSECOND
    if FIRST <= count <= LAST:
        read = instants.read_iso_8601(instant.isoformat())
        assert instants.show_instant(instants.to_microseconds(read))
        assert read == instant
    else:
        with pytest.raises(ValueError, match="calendar"):
            instants.read_iso_8601(instant.isoformat())


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-03:00", "0001-01-01T00:00:00+14:00"])
def test_what_utc_has_no_date_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="calendar"):
        instants.read_iso_8601(text)
