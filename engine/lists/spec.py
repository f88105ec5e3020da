"""What a list or a table is: the type of its entries, how it is looked up, its columns."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

EntryType: TypeAlias = Literal["string", "number", "ip"]
Lookup: TypeAlias = Literal["value", "prefix", "network"]
ColumnType: TypeAlias = Literal["string", "number", "boolean", "instant", "ip"] | tuple[str, ...]


class ListSpec(Struct, frozen=True, tag_field="kind", tag="list"):
    """A list: its entries are values of `type`, and networks beside addresses for `ip`."""

    type: EntryType


class TableSpec(Struct, frozen=True, tag_field="kind", tag="table"):
    """A table: rows of `columns`, found `by` exact value, longest prefix or network.

    A column's type is the name of a type, or the strings it may hold.
    """

    by: Lookup
    columns: dict[str, ColumnType]


Spec: TypeAlias = ListSpec | TableSpec


def lookup_of(spec: Spec) -> Lookup:
    """How an entry is found: those of an `ip` list are networks."""
    if isinstance(spec, TableSpec):
        return spec.by
    return "network" if spec.type == "ip" else "value"
