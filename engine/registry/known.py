"""The names that an account's files can refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec, type_of_column
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import active_version
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Definitions, EventType, ListUse, TableUse


@dataclass(frozen=True, slots=True)
class StoredNames:
    """What an account's files can refer to, as stored: the published definitions and event types,
    encoded, and the specs of lists and tables."""

    programs: tuple[bytes, ...]
    specs: Mapping[str, Spec]


def stored_names(account: Account) -> StoredNames:
    """The input of `known_names`."""
    versions = [
        active_version(account, kind, name)
        for kind, name in account.files
        if kind in ("definitions", "event")
    ]
    return StoredNames(
        tuple(version.program for version in versions if version is not None),
        {name: entries.spec for name, entries in account.lists.items()},
    )


def known_names(stored: StoredNames) -> KnownNames:
    """The names that the checker knows."""
    programs = [decode_program(each) for each in stored.programs]
    specs = stored.specs
    return KnownNames(
        definitions={each.name: each for each in programs if isinstance(each, Definitions)},
        events={each.name: each for each in programs if isinstance(each, EventType)},
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


def known_of(account: Account) -> KnownNames:
    """What an account's files can refer to: its published definitions and event types, its lists."""
    return known_names(stored_names(account))


def _table_use(name: str, spec: TableSpec) -> TableUse:
    columns = {column: type_of_column(type_) for column, type_ in spec.columns.items()}
    return TableUse(name, spec.by, columns)
