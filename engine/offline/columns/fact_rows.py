"""Read facts from an export's columns: as SQL in the representation of programs, and as objects.

An object is read like `Facts`; attributes that were not wanted do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any

from msgspec import defstruct

from tollkeeper.engine.columns.carried import BYTES, carried_values
from tollkeeper.engine.facts.fields_read import ENTRY_SETS, Access
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field


@dataclass(frozen=True, slots=True)
class _Node:
    """An object of facts: its attributes, and the fact that says whether it exists."""

    inner: Mapping[str, _Node | Access]
    made: type[Any]
    there: Access | None


def fields_by_access() -> dict[Access, Field]:
    """The payment's fields by where they are found in facts."""
    return {field.access: field for field in full_vocabulary().payment.values()}


def column_path(path: Sequence[str], row: str) -> str:
    """A column of the row, or what is in it, in SQL."""
    return ".".join([row, *(f'"{name}"' for name in path)])


def carried_fact(field: Field, row: str) -> str:
    """SQL for a fact of a row, represented as `grammar/types.py` says; an address as its 16 bytes.

    For a record it is whether the record exists.
    """
    column = column_path(field.path, row)
    match field.type:
        case t.Record():
            return f"{column} IS NOT NULL"
        case t.Ip():
            return column_path((*field.path[:-1], field.path[-1] + BYTES), row)
        case t.Instant():
            return f"epoch_us({column})"
        case t.Number(scale=int(scale)) if scale:
            return f"CAST({column} * {10**scale} AS BIGINT)"
        case _:
            return column


class FactRows:
    """Reads the `wanted` facts of rows. `columns` is what to select of each row, by name; `names`
    are these names by the facts' accesses.
    """

    def __init__(self, wanted: Iterable[Access], row: str) -> None:
        known = fields_by_access()
        self._wanted = frozenset(wanted) - {("arrived",)} | {("timestamp",)}
        above = {access[:length] for access in self._wanted for length in range(1, len(access))}
        needed = sorted(access for access in self._wanted | above if access in known)
        self._fields = {access: known[access] for access in needed}
        self.columns = {
            f"fact_{number}": carried_fact(field, row)
            for number, field in enumerate(self._fields.values())
        }
        self.names = dict(zip(self._fields, self.columns, strict=True))
        self._root = _node((), needed, known)

    def facts(self, batch: Any, arrived: Sequence[int]) -> list[Any]:
        """The facts of a batch of Arrow with these columns."""
        values: dict[Access, Sequence[Any]] = {("arrived",): arrived}
        for name, (access, field) in zip(self.columns, self._fields.items(), strict=True):
            values[access] = _read(field.type, batch.column(name).to_pylist())
        return list(_objects(self._root, values, len(arrived)))


def _node(at: Access, needed: Sequence[Access], known: Mapping[Access, Field]) -> _Node:
    inner: dict[str, _Node | Access] = {} if at else {"arrived": ("arrived",)}
    beyond = [each for each in needed if each[: len(at)] == at and len(each) > len(at)]
    for name in dict.fromkeys(each[len(at)] for each in beyond):
        access = (*at, name)
        is_object = access not in known or isinstance(known[access].type, t.Record)
        inner[name] = _node(access, beyond, known) if is_object else access
    more = [] if at else [ENTRY_SETS]
    made = defstruct("Read", [*((name, Any) for name in inner), *more], gc=False)
    return _Node(inner, made, at if at in known else None)


def _objects(node: _Node, values: Mapping[Access, Sequence[Any]], count: int) -> Iterator[Any]:
    made = node.made
    parts = [
        _objects(each, values, count) if isinstance(each, _Node) else values[each]
        for each in node.inner.values()
    ]
    rows = zip(*parts, strict=True) if parts else repeat((), count)
    if node.there is None:
        return (made(*row) for row in rows)
    there = values[node.there]
    return (made(*row) if is_there else None for is_there, row in zip(there, rows, strict=True))


def _read(kind: t.Type, values: list[Any]) -> list[Any]:
    """Convert values of `carried_fact`."""
    match kind:
        case t.Collection():
            return [tuple(map(_element, each)) for each in values]
        case t.Ip() | t.Headers() | t.Metadata():
            return carried_values(kind, values)
        case _:
            return values


def _element_reader() -> Callable[[Mapping[str, Any]], Any]:
    """A function that converts a transaction to an object with the attributes of its fields."""
    fields = full_vocabulary().transaction
    readers = [_member(field, fields) for field in fields.values() if len(field.path) == 1]
    names = [(field.access[0], Any) for field in fields.values() if len(field.path) == 1]
    made = defstruct("Element", names, gc=False)
    return lambda held: made(*(read(held) for read in readers))


def _member(field: Field, fields: Mapping[str, Field]) -> Callable[[Mapping[str, Any]], Any]:
    own = field.path[0]
    match field.type:
        case t.Record():
            names = [
                path[1]
                for each in fields.values()
                if len(path := each.path) == 2 and path[0] == own
            ]
            made = defstruct("Inner", [(name, Any) for name in names], gc=False)

            def record(held: Mapping[str, Any]) -> Any:
                inner = held[own]
                return None if inner is None else made(*(inner[name] for name in names))

            return record
        case t.Instant():
            return lambda held: None if held[own] is None else to_microseconds(held[own])
        case _:
            return itemgetter(own)


_element = _element_reader()
