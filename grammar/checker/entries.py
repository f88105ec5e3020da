"""Check expressions with square brackets: headers, metadata entries, metrics and table rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import imports, names
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.words import kind_of

MAX_METADATA_DEPTH = 4

Infer: TypeAlias = Callable[[Work, Scope, s.Expression, t.Type | None], p.Expression | None]
"""The function that checks an inner expression against the type that it meets, if known."""


def entry(work: Work, scope: Scope, node: s.Subscript, infer: Infer) -> p.Expression | None:
    """Check `device.headers["User-Agent"]`, `metadata["sku"]`, `events.TYPE.METRIC[keys]`."""
    if isinstance(node.base, s.ListName):
        work.names_read.add(f"@{node.base.name}")
        work.report(say.table_without_column(node.span, node.base.name))
        return None
    base, path = names.flatten(node.base)
    if isinstance(base, s.Name) and base.text == "events" and "events" not in work.names:
        return _metric(work, scope, node, path, infer)
    owner = _owner(work, scope, node, infer)
    if owner is None:
        return None
    if not isinstance(owner.type, t.Headers | t.Metadata):
        work.report(say.no_entries(node.base.span))
        return None
    if len(node.keys) != 1 or not isinstance(node.keys[0], s.Text):
        word = (
            node.keys[0].text if len(node.keys) == 1 and isinstance(node.keys[0], s.Name) else None
        )
        work.report(say.entry_name(node.keys[0].span if node.keys else node.span, word))
        return None
    key = node.keys[0].value
    if isinstance(owner, p.MetadataFact):
        if len(owner.inner) + 2 > MAX_METADATA_DEPTH:
            work.report(say.metadata_depth(node.keys[0].span, MAX_METADATA_DEPTH))
            return None
        return replace(owner, id=node.id, span=node.span, inner=(*owner.inner, key))
    assert isinstance(owner, p.Fact)
    if isinstance(owner.type, t.Metadata):
        return p.MetadataFact(node.id, node.span, t.Metadata(), key)
    side = "backend" if owner.path[0] == "backend" else "device"
    return p.HeaderFact(node.id, node.span, t.String(), side, key.lower())  # type: ignore[arg-type]


def _owner(
    work: Work, scope: Scope, node: s.Subscript, infer: Infer
) -> p.Fact | p.MetadataFact | None:
    """Return what the brackets index: headers, metadata, or an entry of metadata."""
    match node.base:
        case s.Subscript():
            owner = entry(work, scope, node.base, infer)
        case s.Name() | s.Attribute():
            owner = names.resolve(work, scope, node.base)
        case _:
            work.report(say.no_entries(node.span))
            return None
    if owner is None or isinstance(owner, p.Fact | p.MetadataFact):
        return owner
    work.report(say.no_entries(node.base.span))
    return None


def column(work: Work, scope: Scope, node: s.Attribute, infer: Infer) -> p.Expression | None:
    """Check `@table[key].column`."""
    assert isinstance(node.base, s.Subscript)
    assert isinstance(node.base.base, s.ListName)
    name = node.base.base.name
    work.names_read.add(f"@{name}")
    if scope.of_event:
        work.report(say.not_in_history(node.span, f"@{name}", "a table"))
        return None
    if name not in work.tables:
        _no_table(work, scope, node)
        return None
    table = work.tables[name]
    if table is None:
        return None
    if node.name.text not in table.columns:
        work.report(say.unknown_column(node.name.span, name, node.name.text, table.columns))
        return None
    if len(node.base.keys) != 1:
        work.report(say.one_table_key(node.base.span, name))
        return None
    wanted: t.Type = t.Ip() if table.by == "network" else t.String()
    key = infer(work, scope, node.base.keys[0], wanted)
    if key is None:
        return None
    if type(key.type) is not type(wanted):
        work.report(say.table_key(key.span, name, kind_of(wanted), kind_of(key.type)))
        return None
    return p.TableValue(
        node.id, node.span, table.columns[node.name.text], name, key, node.name.text
    )


def _no_table(work: Work, scope: Scope, node: s.Attribute) -> None:
    """Report a table that is declared nowhere, with the declaration that its use asks for."""
    assert isinstance(node.base, s.Subscript)
    assert isinstance(node.base.base, s.ListName)
    name, span = node.base.base.name, node.base.base.span
    if name in work.lists:
        work.report(say.list_as_table(span, name))
    elif not work.is_excused(name):
        key = node.base.keys[0]
        by = ""
        if isinstance(names.field_of(work, scope, key), t.Ip):
            by = " by network"
        elif isinstance(key, s.Attribute) and key.name.text == "bin":
            by = " by prefix"
        declaration = f"table {name}{by}: {node.name.text}: string"
        work.report(say.unknown_table(span, name, work.tables, declaration, work.header_end))


def _metric(
    work: Work,
    scope: Scope,
    node: s.Subscript,
    path: tuple[s.Identifier, ...],
    infer: Infer,
) -> p.Expression | None:
    if scope.part is not None:
        work.report(say.nested_aggregate(node.span))
        return None
    if len(path) != 2:
        work.report(say.metric_form(node.span))
        return None
    event, metric = path
    if event.text not in work.known.events:
        work.report(say.unknown_event(event.span, event.text, work.known.events))
        return None
    known = work.known.events[event.text]
    if known is None:
        return None
    found = next((m for m in known.metrics if m.name == metric.text), None)
    if found is None:
        kin = [m.name for m in known.metrics]
        work.report(say.unknown_metric(metric.span, event.text, metric.text, kin))
        return None
    wanted = found.history.keys
    if len(wanted) != len(node.keys):
        work.report(say.metric_keys(node.span, metric.text, len(wanted), len(node.keys)))
        return None
    keys = [
        _metric_key(work, scope, key, of, metric.text, infer)
        for key, of in zip(node.keys, wanted, strict=True)
    ]
    present = tuple(key for key in keys if key is not None)
    if len(present) < len(keys):
        return None
    series = imports.series_of(work, known, found)
    return replace(found.history, id=node.id, span=node.span, series=series, keys=present)


def _metric_key(
    work: Work, scope: Scope, node: s.Expression, of: p.Expression, metric: str, infer: Infer
) -> p.Expression | None:
    # A metric's key is read before the decision, so the same names are visible as in an aggregate's
    # keys.
    key = infer(work, replace(scope, history=True, part="by"), node, of.type)
    if key is not None and type(key.type) is not type(of.type):
        work.report(say.metric_key(key.span, metric, kind_of(of.type), kind_of(key.type)))
        return None
    return key
