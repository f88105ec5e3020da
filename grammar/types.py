"""The types of the language. Each also has the value *missing*: no type guarantees presence.

The representation of values, in constants, facts and generated code:

| type | represented as |
|---|---|
| boolean | `bool` |
| number with a scale | `int`, the value times 10 ** scale, below 10 ** 38 in size |
| number without a scale | `float`, never nan or infinite |
| string | `str` |
| ip | `int` of 128 bits, an IPv4 address as its IPv4-mapped IPv6 address |
| instant | `int`, microseconds since 1970-01-01T00:00:00Z |
| duration | `int`, microseconds |
| anything missing | `None` |
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

MAX_DIGITS = 38
METADATA_SCALE = 6
METADATA_LIMIT = 10**12
LONGEST_EVENT_TEXT = 1024
"""Characters in a text of an event's data."""


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Number:
    """A decimal with `scale` places, or an IEEE double if `scale` is None.

    `low` and `high` are inclusive bounds of all possible values; None is no bound.
    """

    scale: int | None
    low: Decimal | None = None
    high: Decimal | None = None


@dataclass(frozen=True, slots=True)
class String:
    """Text, or one of `choices` when they are given (an enum)."""

    choices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Ip:
    pass


@dataclass(frozen=True, slots=True)
class Instant:
    pass


@dataclass(frozen=True, slots=True)
class Duration:
    pass


@dataclass(frozen=True, slots=True)
class Record:
    """A group of fields (`device`), usable with `is missing` and `is present` only."""


@dataclass(frozen=True, slots=True)
class Headers:
    """HTTP headers, `device.headers["User-Agent"]`: strings, names without case."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Free-form entries, `metadata["sku"]`, typed by their use."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A sequence of records within a payment: `transactions`."""


Scalar: TypeAlias = Boolean | Number | String | Ip | Instant | Duration
Type: TypeAlias = Scalar | Record | Headers | Metadata | Collection
