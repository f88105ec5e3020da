"""A metric's value now and over the last day, for given keys."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.lists.values import read_value
from tollkeeper.engine.programs.event_type import LoadedEventType, LoadedMetric
from tollkeeper.engine.programs.json_values import JsonValue, json_value
from tollkeeper.engine.velocity.contract import Key
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value

_DURATION_SCALE = 6
"""A duration is given in seconds, and carried in µs."""
POINTS = 25
"""One point an hour for a day, both ends included: as far back as the windows hold every record."""


class Point(NamedTuple):
    """`at` in µs."""

    at: int
    value: JsonValue


class KeyMismatch(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The keys do not fit the metric; the message says which keys it has."""


async def course(
    windows: Windows,
    account: int,
    loaded: LoadedEventType,
    metric: LoadedMetric,
    keys: Sequence[str],
    now: int,
) -> list[Point]:
    """The metric's value for the keys each hour of the last day, oldest first, now last.

    Raises `KeyMismatch`.
    """
    key = _read_key(metric, keys)
    window = loaded.reading.plan.windows[metric.index]
    points = []
    for back in reversed(range(POINTS)):
        at = now - back * HOUR
        (value,) = await windows.read(account, at, [(window, key)])
        points.append(Point(at, json_value(value, metric.type)))
    return points


def _read_key(metric: LoadedMetric, keys: Sequence[str]) -> Key:
    if len(keys) != len(metric.keys):
        many = f"{len(metric.keys)} keys" if len(metric.keys) > 1 else "one key"
        raise KeyMismatch(f"`{metric.name}` has {many}: give `key` once for each, in order")
    try:
        return tuple(map(_read, metric.keys, keys))
    except ValueError as error:
        raise KeyMismatch(str(error)) from None


def _read(type_: t.Type, text: str) -> Value:
    match type_:
        case t.Number(scale=None):
            return float(text)
        case t.Number(scale=int(scale)):
            return _read_decimal(text, scale)
        case t.Boolean():
            return read_value("boolean", text)
        case t.Ip():
            return read_value("ip", text)
        case t.Instant():
            return read_value("instant", text)
        case t.Duration():
            return _read_decimal(text, _DURATION_SCALE)
        case _:
            return text


def _read_decimal(text: str, scale: int) -> int:
    """The number times 10 ** `scale`. Raises `ValueError`, also for more digits than programs carry."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("this is not a number") from None
    # Few characters may stand for a million digits, which take minutes.
    if not number.is_finite() or number.adjusted() >= t.MAX_DIGITS:
        raise ValueError(f"a number has at most {t.MAX_DIGITS} digits")
    return int(number.scaleb(scale))
