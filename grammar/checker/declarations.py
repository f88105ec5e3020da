"""Check declarations: lists, tables, lets and `use`."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import check_warnings as warn
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.expressions import value
from tollkeeper.grammar.checker.names import METADATA_NUMBER
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS

VALUE_TYPES: dict[str, t.Type] = {
    "string": t.String(),
    "number": METADATA_NUMBER,
    "boolean": t.Boolean(),
    "instant": t.Instant(),
    "ip": t.Ip(),
}
LIST_ENTRIES = ("string", "number", "ip")
LOOKUPS = ("value", "prefix", "network")


def use(work: Work, item: s.Use) -> None:
    """Make the lists and tables of a definitions file available, and its lets except in event
    types.
    """
    name = item.name.text
    if name in work.used_definitions:
        work.report(say.duplicate(item.name.span, name))
        return
    work.used_definitions.add(name)
    if name not in work.known.definitions:
        work.broken = True
        work.report(
            say.unknown_definitions(
                item.name.span, name, work.known.definitions, name in work.known.events
            )
        )
        return
    taken = work.known.definitions[name]
    if taken is None:
        work.broken = True
        work.report(say.broken_definitions(item.name.span, name))
        return
    if name in work.known.own_for_shipped:
        work.report(warn.own_for_shipped(item.name.span, name))
    for each in taken.lists:
        if _is_new(work, item.name, f"@{each.name}", each.name):
            work.lists[each.name] = each
    for table in taken.tables:
        if _is_new(work, item.name, f"@{table.name}", table.name):
            work.tables[table.name] = table
    if work.fields is not None:
        return
    for index, let in enumerate(taken.lets):
        if let.source is None and _is_new(work, item.name, let.name, let.name):
            work.definition_lets[let.name] = (taken, index)


def _is_new(work: Work, node: s.Identifier, shown: str, name: str) -> bool:
    of_lists = name in work.lists or name in work.tables
    is_there = (name in work.names or name in work.definition_lets) if shown == name else of_lists
    if is_there:
        work.report(say.duplicate(node.span, shown))
    return not is_there


def list_declaration(work: Work, item: s.ListDeclaration) -> None:
    """Check `list NAME: TYPE`."""
    name = item.name
    if not _is_new(work, name, f"@{name.text}", name.text):
        return
    work.lists[name.text] = None
    kind = item.type.name
    if kind is None or kind.text not in LIST_ENTRIES:
        work.report(
            say.unknown_type(item.type.span, None if kind is None else kind.text, LIST_ENTRIES)
        )
        return
    use = p.ListUse(name.text, cast("Literal['string', 'number', 'ip']", kind.text))
    known = work.known.lists.get(name.text)
    if known is not None and known != use:
        work.report(say.other_list_type(item.span, name.text, known.type))
    elif name.text in work.known.tables:
        work.report(say.is_a_table(item.span, name.text))
    else:
        work.lists[name.text] = use


def table_declaration(work: Work, item: s.TableDeclaration) -> None:
    """Check `table NAME by LOOKUP: COLUMN: TYPE, …`."""
    name = item.name
    if not _is_new(work, name, f"@{name.text}", name.text):
        return
    work.tables[name.text] = None
    by = "value" if item.by is None else item.by.text
    if by not in LOOKUPS:
        assert item.by is not None
        work.report(say.lookup(item.by.span, by, LOOKUPS))
        return
    columns: dict[str, t.Type] = {}
    whole = True
    for column in item.columns:
        kind = value_type(work, column.type)
        if column.name.text in columns:
            work.report(say.duplicate(column.name.span, column.name.text))
            whole = False
        elif kind is None:
            whole = False
        else:
            columns[column.name.text] = kind
    if not whole:
        return
    use = p.TableUse(name.text, cast("Literal['value', 'prefix', 'network']", by), columns)
    known = work.known.tables.get(name.text)
    if known is not None and known != use:
        work.report(say.other_columns(item.span, name.text))
    elif name.text in work.known.lists:
        work.report(say.is_a_list(item.span, name.text))
    else:
        work.tables[name.text] = use


def value_type(work: Work, node: s.ValueType) -> t.Type | None:
    """Return the type of a column or of an event's field."""
    if node.name is None:
        choices = tuple(dict.fromkeys(choice.value for choice in node.choices))
        if len(choices) < len(node.choices):
            work.report(say.repeated_choice(node.span))
        return t.String(choices)
    kind = VALUE_TYPES.get(node.name.text)
    if kind is None:
        work.report(say.unknown_type(node.span, node.name.text, VALUE_TYPES))
    return kind


def let(work: Work, item: s.Let, scope: Scope) -> None:
    """Check `let NAME = EXPR`."""
    name = item.name.text
    found = value(work, scope, item.value)
    if not can_be_named(work, item.name):
        return
    if found is None:
        work.names[name] = None
        return
    if isinstance(found, p.MetadataFact) and isinstance(found.type, t.Metadata):
        found = replace(found, type=t.String())
    work.names[name] = work.add_let(p.Let(name, item.name.span, found))


def can_be_named(work: Work, name: s.Identifier) -> bool:
    """Whether a let or metric may have this name: nothing else that is visible has it."""
    roots = {field.path[0] for field in work.vocabulary.payment.values()}
    if work.fields is not None:
        roots = set(work.fields)
    if name.text in work.names or name.text in work.definition_lets:
        work.report(say.duplicate(name.span, name.text))
    elif name.text in roots or name.text in ("score", "payment", "decision", "payments", "events"):
        work.report(say.name_of_a_field(name.span, name.text))
    elif name.text in FUNCTIONS or name.text in AGGREGATES:
        work.report(say.name_of_a_function(name.span, name.text))
    else:
        return True
    return False
