"""A checked program as bytes, so that a stored version loads without being checked again.

A version keeps the meaning that it was stored with: later releases, with a stricter checker or more
keywords, do not check it again. Loading only rebuilds the nodes of `grammar/program.py`. Nodes are
stored by their names and fields, so that a node may gain a field with a default. In-file tests and
`must` lines are not part of it; they are in the text.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from tollkeeper.grammar import program as nodes
from tollkeeper.grammar import types
from tollkeeper.grammar.program import Definitions, Program, Rule
from tollkeeper.grammar.syntax import Span

LANGUAGE_VERSION = 1

_JSON_BITS = 63
_NODE, _FIELDS, _MAPPING, _DECIMAL, _INTEGER = "node", "fields", "mapping", "decimal", "integer"
_CLASSES = {
    found.__name__: found
    for module in (types, nodes)
    for found in vars(module).values()
    if dataclasses.is_dataclass(found)
    and isinstance(found, type)
    and found.__module__ == module.__name__
}


def encode_program(program: Program) -> bytes:
    """Encode a program, without its tests and `must` lines."""
    kept = program if isinstance(program, Definitions) else dataclasses.replace(program, tests=())
    if isinstance(kept, Rule):
        kept = dataclasses.replace(kept, promises=())
    return zlib.compress(msgspec.json.encode(_plain(kept)))


def decode_program(data: bytes) -> Program:
    """The program that was encoded, without its tests and `must` lines."""
    program: Program = _node(msgspec.json.decode(zlib.decompress(data)))
    return program


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if (names := _field_names(kind)) is not None:
        fields = {name: _plain(getattr(value, name)) for name in names}
        return {_NODE: kind.__name__, _FIELDS: fields}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    if isinstance(value, int) and value.bit_length() > _JSON_BITS:
        return {_INTEGER: str(value)}
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {_MAPPING: {key: _plain(item) for key, item in value.items()}}
    return value


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass, None for another class."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(kind))


def _node(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_node(item) for item in value)
    if not isinstance(value, dict):
        return value
    if _DECIMAL in value:
        return Decimal(value[_DECIMAL])
    if _INTEGER in value:
        return int(value[_INTEGER])
    if _MAPPING in value:
        return {key: _node(item) for key, item in value[_MAPPING].items()}
    fields = {name: _node(item) for name, item in value[_FIELDS].items()}
    if "span" in fields:
        fields["span"] = Span(*fields["span"])
    return _CLASSES[value[_NODE]](**fields)
