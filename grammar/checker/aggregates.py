"""Check aggregates: over the current payment's transactions, and over history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import check_warnings as warn
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals, membership
from tollkeeper.grammar.checker.entries import Infer
from tollkeeper.grammar.checker.names import field_of, flatten
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.diagnostics import Edit, Fix
from tollkeeper.grammar.fixes import replacing
from tollkeeper.grammar.functions import AGGREGATES, COLLECTIONS, FUNCTIONS, Aggregate
from tollkeeper.grammar.words import kind_of

_NEED_WHERE = frozenset({"any", "all", "since", "streak"})
CollectionName: TypeAlias = Literal["payments", "transactions", "events"]

MAX_WINDOW = 90 * 86_400_000_000
MAX_STREAK = 100
MAX_HALF_LIFE = 30 * 86_400_000_000
MIN_HALF_LIFE = 1_000_000
DECAYED_HALVES = 40
_ALLOWED: dict[str, tuple[type, ...]] = {
    "number": (t.Number,),
    "number or duration": (t.Number, t.Duration),
    "number, instant or duration": (t.Number, t.Instant, t.Duration),
    "scalar": (t.Boolean, t.Number, t.String, t.Ip, t.Instant, t.Duration),
}


def is_aggregate(node: s.Call) -> bool:
    """Whether a call is an aggregate: `min(transactions.duration)` is one, `min(a, b)` a function."""
    name = node.name.text
    if name not in AGGREGATES:
        return False
    lengths = node.over is not None or node.half_life is not None
    clauses = bool(node.by) or lengths or node.where is not None
    return name not in FUNCTIONS or clauses or len(node.arguments) == 1


def is_of_entry(node: s.Call) -> bool:
    """Whether the argument is a list in metadata: `count(metadata["a"])`, `any(metadata["a"] ==
    "b")`.
    """
    if len(node.arguments) != 1 or not is_bare(node):
        return False
    argument = node.arguments[0]
    if node.name.text == "any" and isinstance(argument, s.Compare):
        return any(_starts_with_metadata(each) for each in (argument.left, argument.right))
    return node.name.text in ("any", "count") and _starts_with_metadata(argument)


def _starts_with_metadata(node: s.Expression) -> bool:
    if not isinstance(node, s.Subscript):
        return False
    while isinstance(node, s.Subscript):
        node = node.base
    base, names = flatten(node)
    path = (base.text, *(name.text for name in names)) if isinstance(base, s.Name) else ()
    return path in (("metadata",), ("payment", "metadata"), ("payments", "metadata"))


def aggregate(work: Work, scope: Scope, node: s.Call, infer: Infer) -> p.Expression | None:
    """Check an aggregate. It is over history if it has `by` or `over`, or needs them."""
    known = AGGREGATES[node.name.text]
    if is_of_entry(node):
        return membership.of_entry(work, scope, node, infer)
    if scope.part is not None:
        work.report(say.nested_aggregate(node.span))
        return None
    if len(node.arguments) != 1:
        work.report(say.aggregate_argument(node.span, known, _with_clauses(work, node)))
        return None
    if known.name == "decay":
        return _decay(work, scope, node, infer)
    if node.half_life is not None:
        work.report(say.takes_no_half_life(node.half_life.span, known.name))
        return None
    collection = _collection_of(work, node, known) if node.of else _collection(work, node, known)
    if collection is None:
        return None
    if (
        collection == "transactions"
        and not node.by
        and node.over is None
        and "payment" in known.over
    ):
        if node.earlier is not None:
            before = node.arguments[0].span.start
            work.report(say.earlier_of_the_payment(node.earlier.span, before))
            return None
        return _fold(work, scope, node, known, infer)
    return _history(work, scope, node, known, collection, infer)


def _with_clauses(work: Work, node: s.Call) -> str | None:
    """What `count(payments, user.id, 1h)` was meant to be."""
    match node.arguments:
        case (s.Name() | s.Attribute() as read, *keys, s.Duration() as length) if keys:
            clauses = f"by {', '.join(work.text(key.span) for key in keys)} over"
            written = f"{work.text(read.span)} {clauses} {work.text(length.span)}"
            has_clauses = node.by or node.over or node.where or node.of or node.earlier
            return None if has_clauses else f"{node.name.text}({written})"
        case _:
            return None


def _collection(work: Work, node: s.Call, known: Aggregate) -> CollectionName | None:
    """Find the collection from which the argument reads."""
    argument = node.arguments[0]
    roots = list(dict.fromkeys(base.text for base, _ in _paths(argument)))
    kind = None if roots else field_of(work, Scope(), argument)
    if kind is not None and known.value is not None:
        collection = _collections_in(work)[0]
        work.report(say.field_of_records(argument.span, known, collection, argument.span.start))
        return None
    if isinstance(kind, t.String | t.Ip) and not node.by:
        work.report(say.key_as_records(argument.span, known, work.text(argument.span)))
        return None
    word = argument.text if isinstance(argument, s.Name) else ""
    field = say.values_meant(word) if known.name in ("count", "distinct") else None
    if field is not None and not roots and work.fields is None:
        work.report(say.different_values(argument.span, word, node.name.span, field))
        return None
    if len(roots) != 1:
        work.report(
            say.no_collection(argument.span, known, len(roots), word, _collections_in(work))
        )
        return None
    root = roots[0]
    wanted = _collections_in(work)
    if root not in wanted:
        work.report(say.wrong_collection(argument.span, root, wanted))
        return None
    is_whole = isinstance(argument, s.Name)
    if is_whole and known.value is not None:
        work.report(say.needs_value(argument.span, known, root))
        return None
    if not is_whole and known.value is None:
        fix = _fix_to_records(node, argument, known, root)
        work.report(say.takes_records(argument.span, known, root, fix))
        return None
    return cast("CollectionName", root)


def _fix_to_records(
    node: s.Call, argument: s.Expression, known: Aggregate, root: str
) -> Fix | None:
    """Return what makes `any(transactions.status == "a")` ask each record; None where that leaves
    something to say, as in `any(count(transactions) > 1)`.
    """
    if isinstance(argument, s.Attribute):
        says_all = node.where is not None or known.name not in _NEED_WHERE
        return replacing(argument.span, root) if says_all else None
    if root != "transactions" or not is_bare(node):
        return None
    paths = list(_paths(argument))
    if not all(names for _, names in paths):
        return None
    start, asked = argument.span.start, f"{root} where "
    edits = [Edit(s.Span(base.span.start, names[0].span.start), "") for base, names in paths]
    if edits[0].span.start == start:
        edits[0] = Edit(edits[0].span, asked)
    else:
        edits.insert(0, Edit(s.Span(start, start), asked))
    return Fix(f"write `{known.name}({asked}…)`", tuple(edits))


def _collection_of(work: Work, node: s.Call, known: Aggregate) -> CollectionName | None:
    """Find the collection named after `of`."""
    assert node.of is not None
    wanted = _collections_in(work)
    if node.of.text not in wanted:
        work.report(say.wrong_collection(node.of.span, node.of.text, wanted))
        return None
    if known.value is None:
        work.report(say.takes_records(node.arguments[0].span, known, node.of.text, None))
        return None
    return cast("CollectionName", node.of.text)


def _collections_in(work: Work) -> tuple[str, ...]:
    return ("payments", "transactions") if work.fields is None else ("events",)


def _paths(node: Any) -> Iterator[tuple[s.Name, tuple[s.Identifier, ...]]]:
    """Yield the paths that begin with a collection's name, as the name and what follows."""
    if isinstance(node, s.Name | s.Attribute):
        base, names = flatten(node)
        if isinstance(base, s.Name):
            if base.text in COLLECTIONS:
                yield base, names
            return
        node = base
    if isinstance(node, tuple) and not isinstance(node, s.Span):
        for each in node:
            yield from _paths(each)
    elif isinstance(node, s.Node):
        for field in fields(node):
            yield from _paths(getattr(node, field.name))


def _fold(
    work: Work, scope: Scope, node: s.Call, known: Aggregate, infer: Infer
) -> p.Expression | None:
    inside = replace(scope, collection="transactions")
    value, where, whole = _value_and_where(work, inside, node, known, infer)
    if not whole:
        return None
    function = cast("Any", known.name)
    result = _result(known, value)
    return p.Fold(node.id, node.span, result, function, value, where)


def _value_and_where(
    work: Work, scope: Scope, node: s.Call, known: Aggregate, infer: Infer
) -> tuple[p.Expression | None, p.Expression | None, bool]:
    """Check the value and the `where`. Returns both, and whether they are valid."""
    value = where = None
    whole = True
    if known.value is not None:
        value = _value(work, replace(scope, part="value"), node.arguments[0], known, infer)
        whole = value is not None
    if node.where is not None:
        where = _where(work, replace(scope, part="where"), node.where, infer)
        whole = whole and where is not None
    elif known.name in _NEED_WHERE:
        work.report(say.needs_where(node.span, known.name))
        whole = False
    return value, where, whole


def _value(
    work: Work, scope: Scope, node: s.Expression, known: Aggregate, infer: Infer
) -> p.Expression | None:
    assert known.value is not None
    allowed = _ALLOWED[known.value]
    wanted = t.String() if known.value == "scalar" else t.Number(None)
    value = infer(work, scope, node, wanted)
    if value is None or isinstance(value.type, allowed):
        return value
    work.report(say.argument_kind(value.span, known.name, known.value, kind_of(value.type)))
    return None


def _where(work: Work, scope: Scope, node: s.Expression, infer: Infer) -> p.Expression | None:
    where = infer(work, scope, node, t.Boolean())
    if where is None or isinstance(where.type, t.Boolean):
        return where
    work.report(say.not_a_condition(where.span, kind_of(where.type)))
    return None


def _history(
    work: Work,
    scope: Scope,
    node: s.Call,
    known: Aggregate,
    collection: CollectionName,
    infer: Infer,
) -> p.Expression | None:
    over, has_length = _window_length(work, node, known)
    inside = replace(scope, collection=collection, history=True)
    by = _keys(work, replace(inside, part="by"), node, known, infer)
    value, where, whole = _value_and_where(work, inside, node, known, infer)
    if by is None or not whole or not has_length:
        return None
    series = p.Series(collection, work.event if collection == "events" else None, by, where, value)
    function = cast("Any", known.name)
    if work.event == p.BUILT_IN_EVENT and (over is None or node.earlier is not None):
        work.report(say.earlier_of_a_decided_payment(node.span))
        return None
    if known.name == "streak" and collection != "payments":
        work.report(say.streak_of_payments(node.span, collection))
        return None
    if node.earlier is not None and over is None and known.name != "streak":
        before = node.arguments[0].span.start
        work.report(warn.needless_earlier(node.earlier.span, known.name, before))
    earlier = node.earlier is not None and (over is not None or known.name == "streak")
    return p.History(node.id, node.span, _result(known, value), function, series, by, over, earlier)


def _decay(work: Work, scope: Scope, node: s.Call, infer: Infer) -> p.Expression | None:
    """Check `decay(count of payments …)` and `decay(sum …)`."""
    known = AGGREGATES["decay"]
    match node.arguments[0]:
        case s.Name(text="count"):
            weighed = None
        case s.Call(name=s.Identifier(text="sum"), arguments=(weighed,)) as total if is_bare(total):
            pass
        case _:
            weighed = node
    if node.of is None or node.half_life is None or weighed is node:
        work.report(say.decay_form(node.span))
        return None
    if node.over is not None:
        work.report(say.takes_no_over(node.over.span, "decay"))
        return None
    collection = _collection_of(work, node, known)
    half_life = literals.duration(node.half_life)
    if not MIN_HALF_LIFE <= half_life <= MAX_HALF_LIFE:
        work.report(say.half_life_length(node.half_life.span))
        return None
    if collection is None:
        return None
    inside = replace(scope, collection=collection, history=True)
    by = _keys(work, replace(inside, part="by"), node, known, infer)
    value = where = None
    whole = True
    if weighed is not None:
        value = _value(work, replace(inside, part="value"), weighed, known, infer)
        whole = value is not None
        kind = None if value is None else value.type
        if isinstance(kind, t.Number) and kind.scale is None:
            work.report(say.decays_decimals(weighed.span))
            whole = False
    if node.where is not None:
        where = _where(work, replace(inside, part="where"), node.where, infer)
        whole = whole and where is not None
    if by is None or not whole:
        return None
    event = work.event if collection == "events" else None
    series = p.Series(collection, event, by, where, value)
    floor = Decimal(0) if value is None else _floor(value)
    return p.History(
        node.id,
        node.span,
        t.Number(t.METADATA_SCALE, floor),
        "decay",
        series,
        by,
        (DECAYED_HALVES + 1) * half_life,
        node.earlier is not None,
        half_life,
    )


def is_bare(node: s.Call) -> bool:
    """Whether a call has an argument and no clauses."""
    lengths = node.over is not None or node.half_life is not None
    return not (node.by or lengths or node.where or node.of or node.earlier)


def _window_length(work: Work, node: s.Call, known: Aggregate) -> tuple[int | None, bool]:
    """Return the window's length, and whether the aggregate allows it."""
    if "window" not in known.over:
        if node.over is not None:
            work.report(say.takes_no_over(node.over.span, known.name))
        return None, node.over is None
    if node.over is None:
        match node.by[-1:]:
            case (s.Membership(value=key, container=s.Duration() as window, negated=False),):
                span = s.Span(key.span.end, window.span.end)
                work.report(say.window_with_in(span, work.text(window.span)))
            case _:
                work.report(say.needs_over(node.span, known.name))
        return None, False
    length = literals.duration(node.over)
    if not 0 < length <= MAX_WINDOW:
        work.report(say.window_length(node.over.span, length == 0))
        return None, False
    return length, True


def _keys(
    work: Work, scope: Scope, node: s.Call, known: Aggregate, infer: Infer
) -> tuple[p.Expression, ...] | None:
    if not node.by:
        work.report(say.needs_by(node.span, known.name))
        return None
    for key in node.by:
        if isinstance(key, s.And) and not any(map(_is_condition, key.operands)):
            parts = [work.text(each.span) for each in key.operands]
            work.report(say.keys_with_and(key.span, parts))
            return None
    if node.over is None and "window" in known.over and _ends_in_length(node.by):
        return None
    keys = [infer(work, scope, key, t.String()) for key in node.by]
    found = tuple(key for key in keys if key is not None)
    return found if len(found) == len(keys) else None


def _ends_in_length(by: tuple[s.Expression, ...]) -> bool:
    """Whether the keys go on with `in 1h`, which is reported as a window."""
    last = by[-1]
    return isinstance(last, s.Membership) and isinstance(last.container, s.Duration)


def _is_condition(node: s.Expression) -> bool:
    """Whether an expression is true or false by its form."""
    return not isinstance(node, s.Name | s.Attribute | s.Subscript | s.Call)


def _result(known: Aggregate, value: p.Expression | None) -> t.Type:
    match known.gives:
        case "boolean":
            return t.Boolean()
        case "duration":
            return t.Duration()
        case "whole number":
            return t.Number(0, Decimal(0))
        case "streak":
            return t.Number(0, Decimal(0), Decimal(MAX_STREAK))
        case "number":
            return t.Number(None, _floor(value))
        case _:
            assert value is not None
            if known.name == "sum" and isinstance(value.type, t.Number):
                return t.Number(value.type.scale, _floor(value))
            return value.type


def _floor(value: p.Expression | None) -> Decimal | None:
    """Return 0 if no value is below 0, since then no sum or mean is either."""
    kind = value.type if value is not None else None
    if isinstance(kind, t.Number) and kind.low is not None and kind.low >= 0:
        return Decimal(0)
    return None
