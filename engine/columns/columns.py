"""Facts as typed columns, under the names that rules have for them (docs/columns.md).

| type | column |
|---|---|
| boolean | boolean |
| number of scale 0 | 64-bit integer |
| any other decimal | decimal of its scale |
| number without a scale | double |
| string, metadata (as JSON) | string |
| ip | string, and beside it the 16 bytes of its IPv6 form |
| instant | timestamp in µs, UTC |
| duration | 64-bit integer, µs |
| headers | map of strings |
| record | struct |
| transactions | list of structs |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, chain
from typing import Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.carried import BYTES, DECIMAL_DIGITS, EXACT_DECIMALS, CarriedValues
from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field

UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
ADDRESS_BYTES = pa.binary(IP_BITS // 8)
_INTEGER_DIGITS = 19


@dataclass(frozen=True, slots=True)
class FactColumn:
    """A column of facts, or of a record in them; `access` are the attributes that lead to its
    values.

    `array` makes the column from values as `grammar/types.py` represents them; the column of a
    record or collection is made from its `inner` columns.
    """

    name: str
    doc: str
    access: Access
    type: t.Type
    arrow: Any
    array: Callable[[CarriedValues], Any] | None
    inner: tuple[FactColumn, ...] = ()

    @property
    def field(self) -> Any:
        return pa.field(self.name, self.arrow)


def columns_of(
    fields: Mapping[str, Field], elements: Mapping[str, Field], above: str = ""
) -> tuple[FactColumn, ...]:
    """The columns of the fields below the name `above`; `elements` are the fields of a transaction."""
    found: list[FactColumn] = []
    for name, field in fields.items():
        if ".".join(field.path[:-1]) == above:
            found.extend(_columns(field, name, fields, elements))
    return tuple(found)


def _columns(
    field: Field, name: str, fields: Mapping[str, Field], elements: Mapping[str, Field]
) -> Iterator[FactColumn]:
    own, doc = field.path[-1], field.doc
    match field.type:
        case t.Record():
            inner = columns_of(fields, elements, name)
            arrow = pa.struct([each.field for each in inner])
            yield FactColumn(own, doc, field.access, field.type, arrow, None, inner)
        case t.Collection():
            inner = columns_of(elements, {})
            arrow = pa.list_(pa.struct([each.field for each in inner]))
            yield FactColumn(own, doc, field.access, field.type, arrow, None, inner)
        case t.Ip():
            yield FactColumn(own, doc, field.access, field.type, pa.string(), _addresses)
            bytes_doc = "The address as the 16 bytes of its IPv6 form."
            yield FactColumn(
                own + BYTES, bytes_doc, field.access, field.type, ADDRESS_BYTES, _bytes_of_addresses
            )
        case _:
            arrow, array = column_form(field.type)
            yield FactColumn(own, doc, field.access, field.type, arrow, array)


def column_form(kind: t.Type) -> tuple[Any, Callable[[CarriedValues], Any]]:
    """The Arrow type for values of a type, and the function that makes a column of them."""
    match kind:
        case t.Boolean():
            return _plain(pa.bool_())
        case t.Number(scale=None):
            return _plain(pa.float64())
        case t.Number(scale=0):
            return _plain(pa.int64())
        case t.Number(scale=int(scale), high=high):
            digits = DECIMAL_DIGITS if high is None else len(str(int(high))) + scale
            return decimals(digits, scale)
        case t.Instant():
            return _plain(UTC_MICROSECONDS)
        case t.Duration():
            return _plain(pa.int64())
        case t.Ip():
            return ADDRESS_BYTES, _bytes_of_addresses
        case t.Headers():
            return pa.map_(pa.string(), pa.string()), _headers
        case t.Metadata():
            return pa.string(), _json
        case _:
            return _plain(pa.string())


def _plain(arrow: Any) -> tuple[Any, Callable[[CarriedValues], Any]]:
    return arrow, lambda values: pa.array(values, arrow)


def decimals(digits: int, scale: int) -> tuple[Any, Callable[[CarriedValues], Any]]:
    """Decimals of up to `digits` digits, `scale` of them after the point, from whole numbers."""
    arrow = pa.decimal128(digits, scale)

    def array(values: CarriedValues) -> Any:
        try:
            whole = pa.array(values, pa.int64()).cast(pa.decimal128(_INTEGER_DIGITS, 0))
        except OverflowError:
            exact = [
                None if each is None else Decimal(each).scaleb(-scale, EXACT_DECIMALS)
                for each in values
            ]
            return pa.array(exact, arrow)
        # The same digits, with a point among them.
        return pa.Array.from_buffers(arrow, len(whole), whole.buffers())

    return arrow, array


def _addresses(values: CarriedValues) -> Any:
    shown = [None if each is None else show_network(each, IP_BITS) for each in values]
    return pa.array(shown, pa.string())


def _bytes_of_addresses(values: CarriedValues) -> Any:
    size = IP_BITS // 8
    return pa.array(
        [None if each is None else each.to_bytes(size) for each in values], ADDRESS_BYTES
    )


def _headers(values: CarriedValues) -> Any:
    pairs = [None if each is None else list(each.items()) for each in values]
    return pa.array(pairs, pa.map_(pa.string(), pa.string()))


_encode = msgspec.json.Encoder().encode


def _json(values: CarriedValues) -> Any:
    texts = [None if each is None else _encode(each).decode() for each in values]
    return pa.array(texts, pa.string())


def arrays_of(columns: Sequence[FactColumn], rows: CarriedValues) -> list[Any]:
    """The columns of rows, from which their accesses start."""
    known: dict[Access, CarriedValues] = {(): rows}
    return [_array(column, known) for column in columns]


def _array(column: FactColumn, known: dict[Access, CarriedValues]) -> Any:
    values = _values(column.access, known)
    match column.type:
        case t.Record():
            inner = [_array(each, known) for each in column.inner]
            missing = pa.array([each is None for each in values], pa.bool_())
            return pa.StructArray.from_arrays(
                inner, fields=[each.field for each in column.inner], mask=missing
            )
        case t.Collection():
            held = [each or () for each in values]
            offsets = pa.array(accumulate(map(len, held), initial=0), pa.int32())
            elements = arrays_of(column.inner, list(chain.from_iterable(held)))
            of_element = pa.StructArray.from_arrays(
                elements, fields=[each.field for each in column.inner]
            )
            return pa.ListArray.from_arrays(offsets, of_element)
        case _:
            assert column.array is not None
            return column.array(values)


def _values(access: Access, known: dict[Access, CarriedValues]) -> CarriedValues:
    """The values at the end of an access; those on the path are cached for other columns."""
    if access not in known:
        name = access[-1]
        known[access] = [
            None if each is None else getattr(each, name) for each in _values(access[:-1], known)
        ]
    return known[access]
