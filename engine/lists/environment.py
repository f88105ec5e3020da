"""The account's configuration that programs read beside the payment: lists, tables, rates, time
zone.

An environment is immutable; each change, at its sequence number, makes a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from zoneinfo import ZoneInfo

from tollkeeper.grammar.program import Value

RATE_SCALE = 10
UTC = ZoneInfo("UTC")


class EntryList(Protocol):
    """A list's entries; the cost of a look-up does not grow with their number."""

    def contains(self, value: Value, at: int) -> bool:
        """Whether `value` is an entry that has not expired at `at` (µs since the epoch)."""
        ...


class Table(Protocol):
    """A table's rows, found by exact value, longest prefix or network."""

    def find(self, key: Value, at: int) -> Mapping[str, Value | None] | None:
        """The row's columns, or None when no row holds `key` at `at` (µs since the epoch)."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """`rates[(from, to)]` is the price of one unit of `from` in `to`, times 10 ** RATE_SCALE."""

    lists: Mapping[str, EntryList] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    rates: Mapping[tuple[str, str], int] = field(default_factory=dict)
    time_zone: ZoneInfo = UTC
