"""The lists and tables of programs under test, with the entries that a test or case gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tollkeeper.engine.intake.violations import describe_violations
from tollkeeper.engine.lists.contents import (
    Contents,
    add_entries,
    build_contents,
)
from tollkeeper.engine.lists.entries import read_entry
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.registry.lists import table_spec
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t


class EntryError(Exception):
    """An entry that its list or table does not accept."""


def given_environment(program: p.Program, given: Iterable[p.Given]) -> Environment:
    """The program's lists and tables, with only the given entries.

    Raises `EntryError`.
    """
    entries: dict[str, list[object]] = {}
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for each in given:
        if isinstance(each, p.GivenList):
            entries[each.list] = [{"value": _sent_value(item)} for item in each.entries]
        elif isinstance(each, p.GivenRow):
            rows.setdefault((each.table, each.key), {})[each.column] = _sent_value(each.value)
    for (table, key), columns in rows.items():
        entries.setdefault(table, []).append({"value": key, "columns": columns})
    contents = empty_contents([program])
    return environment_of(
        {name: with_entries(name, held, entries.get(name, ())) for name, held in contents.items()}
    )


def empty_contents(programs: Iterable[p.Program]) -> dict[str, Contents]:
    """The lists and tables that the programs declare, empty."""
    specs: dict[str, Spec] = {}
    for program in programs:
        specs |= {use.name: ListSpec(use.type) for use in program.lists}
        specs |= {use.name: table_spec(use) for use in program.tables}
    return {name: build_contents(spec, ()) for name, spec in specs.items()}


def with_entries(name: str, held: Contents, entries: Iterable[object]) -> Contents:
    """The list with these entries added or renewed. Raises `EntryError`."""
    read = []
    for entry in entries:
        found = read_entry(held.spec, entry, f"@{name}")
        if isinstance(found, list):
            raise EntryError(describe_violations(found))
        read.append(found)
    return add_entries(held, read)


def environment_of(contents: Mapping[str, Contents]) -> Environment:
    """The environment of an account with these lists and tables and default settings."""
    return Environment(
        lists={name: held for name, held in contents.items() if isinstance(held.spec, ListSpec)},
        tables={name: held for name, held in contents.items() if isinstance(held.spec, TableSpec)},
    )


def _sent_value(constant: p.Constant) -> Any:
    """The constant as an entry's value: a string, a boolean, or the text of anything else."""
    if isinstance(constant.type, t.String | t.Boolean):
        return constant.value
    text = written_value(constant.value, constant.type)
    return text.strip('"')
