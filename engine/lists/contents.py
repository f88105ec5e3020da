"""A list's or table's entries in memory, immutable, as decisions read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import column_values, index_key
from tollkeeper.engine.lists.indexes import ExactIndex, Index, network_index, prefix_index
from tollkeeper.engine.lists.layers import HeldEntry, Layers
from tollkeeper.engine.lists.spec import Spec, TableSpec, lookup_of
from tollkeeper.grammar.program import Value


@dataclass(frozen=True, slots=True)
class Contents:
    """An `EntryList` or a `Table`, as `spec` says; numbers are looked up at scale 6."""

    spec: Spec
    index: Index

    def contains(self, value: Value, at: int) -> bool:
        return self.index.find(value, at) is not None

    def find(self, key: Value, at: int) -> Mapping[str, Value | None] | None:
        held = self.index.find(key, at)
        assert isinstance(self.spec, TableSpec)
        return None if held is None else dict(zip(self.spec.columns, held.columns, strict=True))


def build_contents(spec: Spec, entries: Iterable[ListEntry]) -> Contents:
    """The contents of a list or table from the entries that the journal keeps."""
    return Contents(spec, _index(spec, dict(_rows(spec, entries))))


def add_entries(contents: Contents, entries: Iterable[ListEntry]) -> Contents:
    """The contents with these entries added; an entry with the same value is replaced."""
    return _change(contents, dict(_rows(contents.spec, entries)))


def remove_values(contents: Contents, values: Iterable[str]) -> Contents:
    """The contents without these canonical values; unknown ones are ignored."""
    keys = (index_key(contents.spec, value) for value in values)
    held = contents.index.held
    return _change(contents, {key: None for key in keys if held.get(key) is not None})


def has_value(contents: Contents, value: str) -> bool:
    """Whether there is an entry of this canonical value, expired or not."""
    return held_entry(contents, value) is not None


def held_entry(contents: Contents, value: str) -> HeldEntry | None:
    """The entry of this canonical value, expired or not."""
    return contents.index.held.get(index_key(contents.spec, value))


def _change(contents: Contents, changes: Mapping[Value, HeldEntry | None]) -> Contents:
    return Contents(contents.spec, contents.index.with_changes(changes))


def _index(spec: Spec, held: Mapping[Value, HeldEntry]) -> Index:
    match lookup_of(spec):
        case "prefix":
            return prefix_index(held)
        case "network":
            return network_index(held)
        case "value":
            return ExactIndex(Layers((held,)))


def _rows(spec: Spec, entries: Iterable[ListEntry]) -> Iterable[tuple[Value, HeldEntry]]:
    # Rows repeat: equal ones share one object.
    rows: dict[tuple[str | None, int | None], HeldEntry] = {}
    for entry in entries:
        row = rows.get((entry.columns, entry.expires_at))
        if row is None:
            row = HeldEntry(entry.expires_at, column_values(spec, entry))
            rows[entry.columns, entry.expires_at] = row
        yield index_key(spec, entry.value), row
