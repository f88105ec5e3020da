"""A list's or table's entries in memory: a frozen picture that decisions read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import carried_columns, index_key
from tollkeeper.engine.lists.indexes import ExactIndex, Index, network_index, prefix_index
from tollkeeper.engine.lists.layers import Held, Layers
from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec, lookup_of
from tollkeeper.grammar.program import Value


@dataclass(frozen=True, slots=True)
class HeldList:
    """An `EntryList`; numbers are looked up at scale 6."""

    spec: ListSpec
    index: Index

    def contains(self, value: Value, at: int) -> bool:
        return self.index.find(value, at) is not None


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A `Table`."""

    spec: TableSpec
    index: Index

    def find(self, key: Value, at: int) -> Mapping[str, Value | None] | None:
        held = self.index.find(key, at)
        return None if held is None else dict(zip(self.spec.columns, held.columns, strict=True))


Contents: TypeAlias = HeldList | HeldTable


def hold(spec: Spec, entries: Iterable[ListEntry]) -> Contents:
    """The contents of a list or table from the entries that the journal keeps."""
    index = _index(spec, dict(_held(spec, entries)))
    return HeldList(spec, index) if isinstance(spec, ListSpec) else HeldTable(spec, index)


def put(contents: Contents, entries: Iterable[ListEntry]) -> Contents:
    """With the entries added, or renewed where their value is there."""
    return _changed(contents, dict(_held(contents.spec, entries)))


def remove(contents: Contents, values: Iterable[str]) -> Contents:
    """Without the entries of these canonical values; one that is not there is passed over."""
    keys = (index_key(contents.spec, value) for value in values)
    held = contents.index.held
    return _changed(contents, {key: None for key in keys if held.get(key) is not None})


def holds(contents: Contents, value: str) -> bool:
    """Whether there is an entry of this canonical value, expired or not."""
    return contents.index.held.get(index_key(contents.spec, value)) is not None


def _changed(contents: Contents, changes: Mapping[Value, Held | None]) -> Contents:
    index = contents.index.changed(changes)
    if isinstance(contents, HeldList):
        return HeldList(contents.spec, index)
    return HeldTable(contents.spec, index)


def _index(spec: Spec, held: Mapping[Value, Held]) -> Index:
    match lookup_of(spec):
        case "prefix":
            return prefix_index(held)
        case "network":
            return network_index(held)
        case "value":
            return ExactIndex(Layers((held,)))


def _held(spec: Spec, entries: Iterable[ListEntry]) -> Iterable[tuple[Value, Held]]:
    # Rows repeat: each different one is in memory once.
    rows: dict[tuple[str | None, int | None], Held] = {}
    for entry in entries:
        row = rows.get((entry.columns, entry.expires_at))
        if row is None:
            row = Held(entry.expires_at, carried_columns(spec, entry))
            rows[entry.columns, entry.expires_at] = row
        yield index_key(spec, entry.value), row
