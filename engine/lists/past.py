"""A list's or table's entries as of an earlier sequence number, read from the database on demand.

Past contents are not in memory and may be large, so only the entries that can match are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeAlias

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import Contents, build_contents
from tollkeeper.engine.lists.entries import canonical_value
from tollkeeper.engine.lists.spec import ListSpec, Spec, lookup_of
from tollkeeper.engine.lists.values import (
    IP_BITS,
    MAX_VALUE_TEXT,
    read_network,
    read_string,
    show_network,
    show_value,
)
from tollkeeper.grammar.program import Value

FindEntries: TypeAlias = Callable[[Sequence[str]], Iterable[ListEntry]]
"""Finds the past entries with these canonical values."""


@dataclass(frozen=True, slots=True)
class PastContents:
    """An `EntryList` or a `Table`; `read_around` reads those of its entries that can match a value."""

    read_around: Callable[[Value], Contents]

    def contains(self, value: Value, at: int) -> bool:
        return self.read_around(value).contains(value, at)

    def find(self, key: Value, at: int) -> Mapping[str, Value | None] | None:
        return self.read_around(key).find(key, at)


def look_up(spec: Spec, find: FindEntries) -> PastContents:
    """A list or table that answers as `build_contents` of all entries would; it caches what it
    reads."""

    @cache
    def read_around(key: Value) -> Contents:
        return build_contents(spec, find(tuple(candidate_values(spec, key))))

    return PastContents(read_around)


def holding_values(spec: Spec, text: str) -> Iterator[str]:
    """The canonical values of all the entries that can hold what is written so: an address or a
    network, a text or a number. Raises `ValueError`."""
    match lookup_of(spec):
        case "network":
            first, bits = read_network(text)
            return islice(candidate_values(spec, first), bits + 1)
        case "prefix":
            return candidate_values(spec, read_string(text))
        case "value":
            return iter([canonical_value(spec, text)])


def candidate_values(spec: Spec, key: Value) -> Iterator[str]:
    """The canonical values of all entries that can match a key: an address, a text or a number."""
    match lookup_of(spec):
        case "network":
            for bits in range(IP_BITS + 1):
                spare = IP_BITS - bits
                yield show_network(int(key) >> spare << spare, bits)
        case "prefix":
            text = str(key)[:MAX_VALUE_TEXT]
            yield from (text[:size] for size in range(1, len(text) + 1))
        case "value":
            yield show_value("number", key) if spec == ListSpec("number") else str(key)
