"""Spans of time, such as hours or months, as ranges of sequence numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from msgspec import Struct

from tollkeeper.engine.instants import DAY, HOUR, MINUTE, from_microseconds, to_microseconds
from tollkeeper.engine.search.blocks import SHIFT
from tollkeeper.engine.search.parts import blocks_within
from tollkeeper.engine.search.reading import AccountIndex

Every: TypeAlias = Literal["minute", "hour", "day", "month"]
EVERY: tuple[Every, ...] = ("minute", "hour", "day", "month")
MOST = 2_000
"""The most spans in one answer."""
_MINUTES = {"minute": 1, "hour": 60}


class TimeSpan(Struct, frozen=True):
    """The sequence numbers that arrived from `start` (µs) to before `end`."""

    start: int
    end: int
    first: int
    beyond: int


_LENGTHS: dict[Every, int] = {"minute": MINUTE, "hour": HOUR, "day": DAY, "month": 28 * DAY}


def count_spans(since: int, until: int, every: Every) -> int:
    """Return the most spans that a time (µs) can be split into."""
    return (until - since) // _LENGTHS[every] + 2


def spans(
    index: AccountIndex, since: int, until: int, every: Every | None, zone: str
) -> list[TimeSpan]:
    """Split a time (µs) into spans of one length, oldest first; the first and last may be shorter.
    Without `every` there is one span.
    """
    edges = [since]
    if every is not None:
        edges += _edges(since, until, every, ZoneInfo(zone))
    edges.append(until)
    sequences = [min(index.sequence_at(edge, 0), index.last + 1) for edge in edges]
    return [
        TimeSpan(start, end, first, beyond)
        for start, end, first, beyond in zip(
            edges, edges[1:], sequences, sequences[1:], strict=False
        )
        if end > start
    ]


SpanPart: TypeAlias = tuple[int, int, int]
"""A span's number, and its first position in a block or bundle and the position after its last."""


def spans_of_part(asked: list[TimeSpan], part: int) -> Iterator[SpanPart]:
    """What belongs to each span of a block or bundle."""
    blocks = blocks_within(part)
    base, size = blocks.start << SHIFT, len(blocks) << SHIFT
    number = bisect_right(asked, base, key=lambda span: span.beyond)
    while number < len(asked) and asked[number].first < base + size:
        low, high = max(asked[number].first - base, 0), min(asked[number].beyond - base, size)
        if low < high:
            yield number, low, high
        number += 1


def _edges(since: int, until: int, every: Every, zone: ZoneInfo) -> Iterator[int]:
    """The starts of spans after `since` and before `until`."""
    edge = _begin(from_microseconds(since).astimezone(zone), every)
    while True:
        edge = _next(edge, every, zone)
        at = to_microseconds(edge)
        if at >= until:
            return
        if at > since:
            yield at


def _begin(moment: datetime, every: Every) -> datetime:
    whole = moment.replace(second=0, microsecond=0)
    if every == "minute":
        return whole
    if every == "hour":
        return whole.replace(minute=0)
    day = whole.replace(minute=0, hour=0)
    return day if every == "day" else day.replace(day=1)


def _next(edge: datetime, every: Every, zone: ZoneInfo) -> datetime:
    """Return the next start: minutes and hours are of fixed length, days and months follow the time
    zone's calendar.
    """
    if every in _MINUTES:
        later = from_microseconds(to_microseconds(edge)) + timedelta(minutes=_MINUTES[every])
        return later.astimezone(zone)
    if every == "day":
        return (edge + timedelta(days=1)).replace(fold=0)
    return (edge.replace(day=1) + timedelta(days=32)).replace(day=1)
