"""What an account has for its files to refer to."""

from __future__ import annotations

from collections.abc import Mapping

from tollkeeper.engine.lists.spec import ColumnType, ListSpec, TableSpec
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import active_version
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Definitions, EventType, ListUse, TableUse
from tollkeeper.grammar.types import METADATA_SCALE, Boolean, Instant, Ip, Number, String, Type

_COLUMN_TYPES: Mapping[str, Type] = {
    "string": String(),
    "number": Number(METADATA_SCALE),
    "boolean": Boolean(),
    "instant": Instant(),
    "ip": Ip(),
}


def known_of(account: Account) -> KnownNames:
    """What an account's files can refer to: its published definitions and event types, its lists."""
    definitions: dict[str, Definitions | None] = {}
    events: dict[str, EventType | None] = {}
    for kind, name in account.files:
        version = active_version(account, kind, name)
        if version is None or kind not in ("definitions", "event"):
            continue
        program = decode_program(version.program)
        if isinstance(program, Definitions):
            definitions[name] = program
        elif isinstance(program, EventType):
            events[name] = program
    specs = {name: entries.spec for name, entries in account.lists.items()}
    return KnownNames(
        definitions=definitions,
        events=events,
        lists={
            name: ListUse(name, spec.type)
            for name, spec in specs.items()
            if isinstance(spec, ListSpec)
        },
        tables={
            name: _table_use(name, spec)
            for name, spec in specs.items()
            if isinstance(spec, TableSpec)
        },
    )


def _table_use(name: str, spec: TableSpec) -> TableUse:
    columns = {column: _column_type(type_) for column, type_ in spec.columns.items()}
    return TableUse(name, spec.by, columns)


def _column_type(type_: ColumnType) -> Type:
    return _COLUMN_TYPES[type_] if isinstance(type_, str) else String(type_)
