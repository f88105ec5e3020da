"""What a list or a table is: the type of its entries, how it is looked up, its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tollkeeper.grammar.types import METADATA_SCALE, Boolean, Instant, Ip, Number, String, Type

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


COLUMN_TYPES: Final[Mapping[str, Type]] = {
    "string": String(),
    "number": Number(METADATA_SCALE),
    "boolean": Boolean(),
    "instant": Instant(),
    "ip": Ip(),
}
"""The types of columns by their names, apart from choices."""
_NAMES: Final[Mapping[type[Type], ColumnType]] = {
    type(type_): name  # type: ignore[misc]
    for name, type_ in COLUMN_TYPES.items()
}


def type_of_column(column: ColumnType) -> Type:
    return COLUMN_TYPES[column] if isinstance(column, str) else String(column)


def column_of_type(type_: Type) -> ColumnType:
    """The column that holds values of a type that a program declares."""
    choices = type_.choices if isinstance(type_, String) else None
    return choices or _NAMES[type(type_)]


def lookup_of(spec: Spec) -> Lookup:
    """How an entry is found: those of an `ip` list are networks."""
    if isinstance(spec, TableSpec):
        return spec.by
    return "network" if spec.type == "ip" else "value"
