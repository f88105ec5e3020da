"""Facts read from an export's columns: as SQL that carries them as programs do, and as objects.

What a row gives is read like `Facts`; an attribute that was not wanted is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any

from msgspec import defstruct

from tollkeeper.engine.columns.carried import BYTES, carried_values
from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field


@dataclass(frozen=True, slots=True)
class _Node:
    """An object of facts: what it is made of, by name, and the fact that says whether it is there."""

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
    """A fact of a row in SQL, carried as `grammar/types.py` says; an address as its 16 bytes.

    Of a record it is whether it is there.
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
    """Reads the facts that are `wanted` of rows: `columns` are what to select of each, by name, and
    `names` these names by the facts' accesses.
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
        """The facts of a batch of Arrow that has the columns."""
        values: dict[Access, Sequence[Any]] = {("arrived",): arrived}
        for name, (access, field) in zip(self.columns, self._fields.items(), strict=True):
            values[access] = _read(field.type, batch.column(name).to_pylist())
        return list(_objects(self._root, values, len(arrived)))


def _node(at: Access, needed: Sequence[Access], known: Mapping[Access, Field]) -> _Node:
    inner: dict[str, _Node | Access] = {} if at else {"arrived": ("arrived",)}
    beyond = [each for each in needed if each[: len(at)] == at and len(each) > len(at)]
    for name in dict.fromkeys(each[len(at)] for each in beyond):
        here = (*at, name)
        is_object = here not in known or isinstance(known[here].type, t.Record)
        inner[name] = _node(here, beyond, known) if is_object else here
    made = defstruct("Read", [(name, Any) for name in inner], gc=False)
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
    """Facts of the form that `carried_fact` has."""
    match kind:
        case t.Collection():
            return [tuple(map(_element, each)) for each in values]
        case t.Ip() | t.Headers() | t.Metadata():
            return carried_values(kind, values)
        case _:
            return values


def _element_reader() -> Callable[[Mapping[str, Any]], Any]:
    """Reads a transaction: an object with the attributes that its fields are found by."""
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
