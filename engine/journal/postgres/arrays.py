"""Columns of rows as arrays in PostgreSQL's binary format.

psycopg encodes lists, too, but looks at each element's type first: for an append of one entry that
takes longer than everything else that this process does for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from psycopg.adapt import Dumper
from psycopg.pq import Format

# Dimensions, whether an element is null, the elements' type; their number, and the first one's index.
_HEAD: Final = struct.Struct("!iiIii")
_LENGTH: Final = struct.Struct("!i")
_NULL: Final = _LENGTH.pack(-1)


class ElementType(NamedTuple):
    """A type of elements: its number in every database, and what encodes an element, with its length
    before it."""

    oid: int
    encode: Callable[[Any], bytes]


def with_length(encoded: bytes) -> bytes:
    """An encoded element behind its length."""
    return _LENGTH.pack(len(encoded)) + encoded


INT8: Final = ElementType(20, partial(struct.Struct("!iq").pack, 8))
INT2: Final = ElementType(21, partial(struct.Struct("!ih").pack, 2))
BYTEA: Final = ElementType(17, with_length)


class EncodedArray(bytes):
    """An array, whose type is what the statement casts it to."""


class EncodedArrayDumper(Dumper):
    """Hands encoded arrays to psycopg as they are."""

    format = Format.BINARY

    def dump(self, obj: EncodedArray) -> EncodedArray:
        return obj


def encode_columns(
    rows: Sequence[Sequence[Any]], types: Sequence[ElementType]
) -> list[EncodedArray]:
    """An array for each column of the rows; an element that is None is null. Raises `OverflowError`,
    `ValueError` for an element that its type can't hold."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    try:
        return [_encode(column, type_) for column, type_ in zip(columns, types, strict=True)]
    except struct.error as error:
        raise OverflowError(str(error)) from error


def _encode(column: Sequence[Any], type_: ElementType) -> EncodedArray:
    head = _HEAD.pack(1, None in column, type_.oid, len(column), 1)
    encode = type_.encode
    return EncodedArray(
        b"".join([head, *[_NULL if each is None else encode(each) for each in column]])
    )
