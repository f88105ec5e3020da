"""Resolve a path: a let, or a field of the payment, the transaction, the event or the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.field_meant import fields_meant, where_it_is
from tollkeeper.grammar.checker.imports import take_let
from tollkeeper.grammar.checker.scope import LOOKED_UP, Scope, Work
from tollkeeper.grammar.functions import COLLECTIONS, FUNCTIONS, Function
from tollkeeper.grammar.vocabulary import Field

SCORE = t.Number(2, Decimal(0), Decimal(1))
_METADATA_BOUND = Decimal(t.METADATA_LIMIT)
LABEL = t.String(("fraud", "legitimate", "unsure"))
_SCALARS = (t.Boolean, t.Number, t.String, t.Ip, t.Instant)
_COUNTED = frozenset({"count", "length", "size", "len"})
"""Fields by which other languages say how many there are."""
_TELLING = frozenset({"id", "fingerprint"})
"""Last names of the fields that tell one of a kind from another."""
_MOST_FIELDS = 3
_TAKEN: dict[str, type[t.Type]] = {"text": t.String, "instant": t.Instant}
METADATA_NUMBER = t.Number(t.METADATA_SCALE, -_METADATA_BOUND, _METADATA_BOUND)


def flatten(node: s.Expression) -> tuple[s.Expression, tuple[s.Identifier, ...]]:
    """Split a chain of attributes into its first expression and the names after it."""
    names: list[s.Identifier] = []
    while isinstance(node, s.Attribute):
        names.append(node.name)
        node = node.base
    return node, tuple(reversed(names))


def resolve(work: Work, scope: Scope, node: s.Name | s.Attribute) -> p.Expression | None:
    """Resolve a path without subscripts; None if it is unknown."""
    base, names = flatten(node)
    if not isinstance(base, s.Name):
        match base:
            case s.Subscript(base=s.Name(text=name)) if name in COLLECTIONS:
                work.report(say.place_in_collection(node.span, name))
            case s.ListName(name=name) if name not in work.lists and name not in work.tables:
                work.report(say.text_as_list(node.span, work.text(node.span)))
            case _:
                work.report(say.no_fields(node.span))
        return None
    path = (base.text, *(name.text for name in names))
    spans = (base.span, *(name.span for name in names))
    return _resolve_path(work, scope, node, path, spans)


def _resolve_path(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    root = path[0]
    if scope.part == "value" and root == scope.collection and len(path) > 1:
        return _of_record(work, scope, node, path[1:], spans[1:])
    if scope.sees_element and ".".join(path) in work.vocabulary.transaction:
        return _element(work, node, path)
    if root in work.definition_lets and root not in work.names:
        definitions, index = work.definition_lets[root]
        work.names[root] = take_let(work, definitions.lets, index, definitions.name)
    if root in work.names:
        return _let(work, scope, node, path, spans)
    if work.fields is not None and root in work.fields:
        return _event_field(work, node, path, spans)
    if root == "score" and len(path) == 1:
        return _score(work, scope, node)
    if root == "decision":
        return _decision(work, scope, node, path, spans)
    if root == "label":
        return _label(work, scope, node, path, spans)
    if root in ("payments", "events") and root not in work.vocabulary.payment:
        work.report(say.collection_alone(node.span, root))
        return None
    if work.fields is not None:
        return _event_field(work, node, path, spans)
    if root == "payment" and len(path) > 1:
        return _payment(work, scope, node, path[1:], spans[1:])
    return _payment(work, scope, node, path, spans)


def _of_record(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    """Resolve a path that starts at its collection, `payments.amount`."""
    if scope.collection == "transactions":
        if ".".join(path) in work.vocabulary.transaction:
            return _element(work, node, path)
        _unknown(work, path, spans, work.vocabulary.transaction, ())
        return None
    if scope.collection == "events":
        return _event_field(work, node, path, spans)
    if path[0] == "decision":
        return _decision(work, scope, node, path, spans)
    if path[0] == "label":
        return _label(work, scope, node, path, spans)
    return _payment(work, Scope(), node, path, spans)


def _element(work: Work, node: s.Expression, path: tuple[str, ...]) -> p.Expression:
    field = work.vocabulary.transaction[".".join(path)]
    return p.ElementFact(node.id, node.span, field.type, path)


def _payment(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    field = work.vocabulary.payment.get(".".join(path))
    if field is not None:
        return p.Fact(node.id, node.span, field.type, path)
    for length in range(len(path) - 1, 0, -1):
        parent = work.vocabulary.payment.get(".".join(path[:length]))
        if parent is not None and isinstance(parent.type, t.Headers | t.Metadata):
            span = s.Span(spans[0].start, spans[-1].end)
            work.report(say.dotted_entry(span, ".".join(path[:length]), ".".join(path[length:])))
            return None
    fields = work.vocabulary.payment
    if scope.sees_element and path[0] in work.vocabulary.transaction:
        fields = work.vocabulary.transaction
    _unknown(work, path, spans, fields, _others(work, scope))
    return None


def _others(work: Work, scope: Scope) -> Iterable[str]:
    yield from work.names
    yield from work.definition_lets
    yield "score"
    if scope.sees_element:
        yield from work.vocabulary.transaction


def _unknown(
    work: Work,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
    fields: Mapping[str, Field],
    others: Iterable[str],
) -> None:
    """Report the first unknown part of the path, with the most similar known name."""
    if work.is_excused(path[0]) and path[0] not in fields:
        return
    if path[0] in work.declared and path[0] not in {*fields, *FUNCTIONS}:
        work.report(say.declared_below(spans[0], path[0]))
        return
    if len(path) == 1 and (path[0] in work.lists or path[0] in work.tables):
        work.report(say.list_without_sign(spans[0], path[0]))
        return
    if path[0] in work.used_definitions and len(path) > 1:
        work.report(say.name_of_definitions(s.Span(spans[0].start, spans[1].start), path[0]))
        return
    if len(path) == 1 and path[0] in FUNCTIONS:
        work.report(say.function_alone(spans[0], FUNCTIONS[path[0]]))
        return
    if len(path) == 1 and (definitions := _definitions_with(work, path[0])) is not None:
        work.report(say.without_use(spans[0], path[0], definitions))
        return
    depth = 0
    while depth < len(path) - 1 and ".".join(path[: depth + 1]) in fields:
        depth += 1
    before = path[:depth]
    kin = [
        f.path[depth] for f in fields.values() if len(f.path) > depth and f.path[:depth] == before
    ]
    own = list(others)
    if depth == 0:
        kin.extend(own)
    parent = fields.get(".".join(before))
    whole = s.Span(spans[0].start, spans[-1].end)
    if parent is not None and isinstance(parent.type, t.Collection):
        _of_collection(work, path, spans, whole)
        return
    known = (*fields, *(name for name in own if name in work.vocabulary.transaction))
    if meant := fields_meant(path, known):
        work.report(say.another_name(spans[depth], ".".join(path), whole, meant))
        return
    if parent is not None and not kin:
        owner, word = ".".join(before), path[depth]
        if depth + 1 == len(path) and _takes(word, parent.type):
            work.report(say.function_as_field(spans[depth], owner, word, whole))
        else:
            work.report(say.no_field_of(spans[depth], owner, word))
        return
    asked_so = where_it_is(path)
    elsewhere = (
        [name for name in fields if name.split(".")[-1] == path[depth]]
        if depth == 0 and asked_so is None
        else []
    )
    work.report(
        say.unknown_name(
            spans[depth],
            ".".join(path),
            path[depth],
            kin,
            elsewhere,
            asked_so,
            may_be_metadata=True,
        )
    )


def _of_collection(
    work: Work, path: tuple[str, ...], spans: tuple[s.Span, ...], whole: s.Span
) -> None:
    """Report a path that goes on after a collection."""
    known = work.vocabulary.transaction
    if ".".join(path[1:]) in known:
        work.report(say.collection_field(whole, path))
    elif path[1] in _COUNTED and len(path) == 2:
        work.report(say.uncounted(whole, path[0]))
    else:
        kin = {field.path[0] for field in known.values()}
        work.report(say.unknown_name(spans[1], ".".join(path), path[1], sorted(kin), ()))


def _takes(function: str, kind: t.Type) -> bool:
    """Whether a function of this name takes one value of such a type."""
    match FUNCTIONS.get(function):
        case Function(parameters=(first, *rest)) if all(each.optional for each in rest):
            return isinstance(kind, _TAKEN.get(first.takes, ()))
    return False


def fields_within(work: Work, path: tuple[str, ...]) -> list[str]:
    """Return some fields of a group, those that tell it from others first."""
    inside = [
        name
        for name, field in work.vocabulary.payment.items()
        if field.path[: len(path)] == path and isinstance(field.type, _SCALARS)
    ]
    inside.sort(key=lambda name: (name.split(".")[-1] not in _TELLING, name.count(".")))
    return inside[:_MOST_FIELDS]


def _definitions_with(work: Work, name: str) -> str | None:
    """Return the name of definitions that have a let of this name."""
    found = (
        each.name
        for each in work.known.definitions.values()
        if each is not None and any(let.name == name for let in each.lets)
    )
    return next(found, None)


def field_of(work: Work, scope: Scope, node: s.Expression) -> t.Type | None:
    """The type of the field of a payment or transaction that a path names; None for anything else."""
    base, rest = flatten(node)
    if not isinstance(base, s.Name) or work.fields is not None or base.text in work.names:
        return None
    path = ".".join([base.text, *(name.text for name in rest)])
    fields = work.vocabulary.transaction if scope.sees_element else {}
    field = fields.get(path) or work.vocabulary.payment.get(path)
    return field.type if field is not None else None


def is_unknown(work: Work, scope: Scope, node: s.Expression) -> bool:
    """Whether an expression is one word that names nothing."""
    if not isinstance(node, s.Name) or work.is_excused(node.text):
        return False
    roots = {field.path[0] for field in work.vocabulary.payment.values()}
    known = (
        *(work.names, work.definition_lets, work.declared, work.lists, work.tables, FUNCTIONS),
        *(work.fields or roots, work.vocabulary.transaction if scope.sees_element else ()),
        ("score", "decision", "label", "payment", "payments", "events"),
    )
    return not any(node.text in names for names in known)


def _let(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    name = path[0]
    work.names_read.add(name)
    index = work.names[name]
    if index is None:
        return None
    if len(path) > 1:
        work.report(say.no_field_of(spans[1], name, path[1]))
        return None
    needs = work.needs[index]
    unknown = needs if scope.of_event else needs - LOOKED_UP
    if scope.history and unknown:
        work.report(say.not_in_history(node.span, name, min(unknown)))
        return None
    if "score" in needs and not scope.score:
        work.report(say.score_in_let(node.span, name))
        return None
    value = work.lets[index].value
    if isinstance(value, p.MetadataFact):
        return replace(value, id=node.id, span=node.span, type=t.Metadata())
    return p.LetValue(node.id, node.span, value.type, index)


def _score(work: Work, scope: Scope, node: s.Expression) -> p.Expression | None:
    if scope.history:
        work.report(say.score_in_history(node.span))
        return None
    if not scope.score:
        work.report(say.score_of_itself(node.span))
        return None
    return p.Score(node.id, node.span, SCORE)


def _decision(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    if not scope.sees_decision or scope.collection == "events":
        work.report(say.decision_outside(node.span))
        return None
    known = {field.path[-1]: field for field in work.vocabulary.decision.values()}
    field = known.get(path[-1])
    if field is not None and len(path) == 2:
        return p.DecisionFact(node.id, node.span, field.type, cast("Any", path[-1]))
    work.report(say.unknown_name(spans[-1], ".".join(path), path[-1], known, ()))
    return None


def _label(
    work: Work,
    scope: Scope,
    node: s.Expression,
    path: tuple[str, ...],
    spans: tuple[s.Span, ...],
) -> p.Expression | None:
    if not scope.sees_decision or scope.collection == "events":
        work.report(say.label_outside(node.span))
        return None
    if len(path) > 1:
        work.report(say.no_field_of(spans[1], "label", path[1]))
        return None
    return p.LabelFact(node.id, node.span, LABEL)


def _event_field(
    work: Work, node: s.Expression, path: tuple[str, ...], spans: tuple[s.Span, ...]
) -> p.Expression | None:
    assert work.fields is not None
    field = work.fields.get(path[0])
    if field is None:
        kin = [*work.fields, *work.names, *work.definition_lets]
        if not work.is_excused(path[0]):
            work.report(say.unknown_name(spans[0], ".".join(path), path[0], kin, ()))
        return None
    if len(path) > 1:
        work.report(say.no_field_of(spans[1], path[0], path[1]))
        return None
    return p.EventFact(node.id, node.span, field.type, field.name)
