"""An account's lists and tables over time, for look-ups from SQL by key and sequence number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import column_values, index_key
from tollkeeper.engine.lists.indexes import network_key
from tollkeeper.engine.lists.spec import ColumnType, ListSpec, Lookup, Spec, TableSpec, lookup_of
from tollkeeper.engine.lists.values import IP_BITS
from tollkeeper.engine.offline.columns.arrow_function import OwnFunction, make_function
from tollkeeper.grammar.program import Value

_ENTRIES = (
    "SELECT value, columns, epoch_us(expires_at), valid_from, valid_to FROM lists"
    " WHERE list = ? AND value IS NOT NULL"
)
_LENGTH_BITS = 8


class HeldSpan(NamedTuple):
    """An entry's columns, with the span of sequence numbers in which it was in its list."""

    begins: int
    ends: int | None
    expires_at: int | None
    columns: tuple[Value | None, ...]

    def holds(self, sequence: int, at: int) -> bool:
        is_there = self.begins <= sequence and (self.ends is None or sequence < self.ends)
        return is_there and (self.expires_at is None or at < self.expires_at)


class RecordedEntries:
    """The entries of one list or table, in memory."""

    def __init__(self, tables: Any, name: str, spec: Spec) -> None:
        held: defaultdict[Value, list[HeldSpan]] = defaultdict(list)
        for value, columns, expires_at, begins, ends in tables.execute(_ENTRIES, [name]).fetchall():
            read = column_values(spec, ListEntry(value, columns, expires_at))
            held[index_key(spec, value)].append(HeldSpan(begins, ends, expires_at, read))
        self._held: Mapping[Value, Sequence[HeldSpan]] = dict(held)
        self._lookup = lookup_of(spec)
        self._lengths = sorted({_length(self._lookup, key) for key in held}, reverse=True)

    def find(self, key: Value, sequence: int, at: int) -> HeldSpan | None:
        """The entry that matched a key for a record with this sequence number that arrived `at`
        (µs)."""
        for candidate in self._candidates(key):
            for each in self._held.get(candidate, ()):
                if each.holds(sequence, at):
                    return each
        return None

    def _candidates(self, key: Value) -> Iterator[Value]:
        """The keys of entries that match this one, the longest first."""
        match self._lookup:
            case "value":
                yield key
            case "prefix":
                text = str(key)
                yield from (text[:length] for length in self._lengths if length <= len(text))
            case "network":
                for bits in self._lengths:
                    spare = IP_BITS - bits
                    yield network_key(int(key) >> spare << spare, bits)


def _length(lookup: Lookup, key: Value) -> int:
    match lookup:
        case "value":
            return 0
        case "prefix":
            return len(str(key))
        case "network":
            return int(key) & (1 << _LENGTH_BITS) - 1


class RecordedLists:
    """The look-ups as SQL functions, registered when first used; `specs` are the account's lists
    and tables."""

    def __init__(self, tables: Any, specs: Mapping[str, Spec]) -> None:
        self.specs = specs
        self._tables = tables
        self._numbers = {name: number for number, name in enumerate(sorted(specs))}
        self._entries: dict[str, RecordedEntries] = {}
        self._made: set[str] = set()

    def contains(self, name: str) -> str:
        """The function from (value, sequence number, arrival in µs) to whether the list had the
        value."""
        spec = self.specs[name]
        assert isinstance(spec, ListSpec)
        own = f"own_list_{self._numbers[name]}"
        entries = self._entries_of(name)

        def holds(value: Any, sequence: int, at: int) -> bool:
            return entries.find(_decode_value(spec, value), sequence, at) is not None

        return self._make(own, spec, "BOOLEAN", holds)

    def column(self, name: str, column: str) -> str:
        """The function from (key, sequence number, arrival in µs) to the column of the matching
        row."""
        spec = self.specs[name]
        assert isinstance(spec, TableSpec)
        place = list(spec.columns).index(column)
        kind = spec.columns[column]
        entries = self._entries_of(name)

        def value_of(key: Any, sequence: int, at: int) -> Any:
            found = entries.find(_decode_value(spec, key), sequence, at)
            value: Any = None if found is None else found.columns[place]
            return value.to_bytes(IP_BITS // 8) if kind == "ip" and value is not None else value

        own = f"own_table_{self._numbers[name]}_{place}"
        return self._make(own, spec, _SQL_TYPES.get(kind, "VARCHAR"), value_of)

    def _entries_of(self, name: str) -> RecordedEntries:
        if name not in self._entries:
            self._entries[name] = RecordedEntries(self._tables, name, self.specs[name])
        return self._entries[name]

    def _make(self, own: str, spec: Spec, gives: str, value_of: Callable[..., Any]) -> str:
        if own not in self._made:
            self._made.add(own)
            given = (_key_type(spec), "BIGINT", "BIGINT")
            make_function(self._tables, own, OwnFunction(given, gives, value_of))
        return own


_SQL_TYPES: Mapping[ColumnType, str] = {
    "number": "BIGINT",
    "boolean": "BOOLEAN",
    "instant": "BIGINT",
    "ip": "BLOB",
}


def _key_type(spec: Spec) -> str:
    if lookup_of(spec) == "network":
        return "BLOB"
    return "HUGEINT" if spec == ListSpec("number") else "VARCHAR"


def _decode_value(spec: Spec, value: Any) -> Value:
    if lookup_of(spec) == "network":
        return int.from_bytes(value)
    return int(value) if spec == ListSpec("number") else str(value)
