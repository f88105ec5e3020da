"""Check an event type's own statements: fields, metrics, monitors and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals
from tollkeeper.grammar.checker.declarations import can_be_named, value_type
from tollkeeper.grammar.checker.expressions import condition, value, value_for
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.words import kind_of

_SCOPE = Scope(score=False)
_OF_KEYS = replace(_SCOPE, history=True, part="by", collection="events")
"""Keys may only read what a stored record holds, nothing that the account can change."""
_LABELS = ("fraud", "legitimate", "unsure", "none")
_OWN = {
    "id": p.EventField("id", t.String(), True),
    "timestamp": p.EventField("timestamp", t.Instant(), True),
}


def own_fields(work: Work, items: Iterable[s.Field]) -> dict[str, p.EventField]:
    """Check the event's fields; return them by name. Every event also has an `id` and a
    `timestamp`.
    """
    found = dict(_OWN)
    for item in items:
        kind = value_type(work, item.type)
        if item.name.text in found:
            work.report(say.duplicate(item.name.span, item.name.text))
        elif kind is not None:
            found[item.name.text] = p.EventField(item.name.text, kind, item.required)
    return found


def metric(work: Work, item: s.Metric) -> None:
    """Check `metric NAME = AGGREGATE`, as a let whose value is one aggregate over history."""
    found = value(work, _SCOPE, item.value)
    if not can_be_named(work, item.name):
        return
    work.names[item.name.text] = None
    work.names_read.add(item.name.text)
    if isinstance(found, p.History) and not _is_metric_read(item.value):
        work.names[item.name.text] = work.add_let(p.Let(item.name.text, item.name.span, found))
    elif found is not None:
        work.report(say.metric_value(item.value.span))


def _is_metric_read(node: s.Expression) -> bool:
    return isinstance(node, s.Subscript)


def metrics(work: Work, items: Iterable[s.Metric]) -> tuple[p.Metric, ...]:
    """Return the metrics that were checked, with their aggregates."""
    found = []
    for item in items:
        index = work.names.get(item.name.text)
        history = None if index is None else work.lets[index].value
        if isinstance(history, p.History):
            title = None if item.title is None else item.title.value
            found.append(p.Metric(item.name.text, title, history))
    return tuple(found)


def monitor(work: Work, item: s.Monitor) -> p.Monitor | None:
    """Check a monitor; None if it has errors."""
    when = condition(work, _SCOPE, item.when)
    keys = [value_for(work, _OF_KEYS, key, t.String()) for key in item.by]
    every = None if item.every is None else literals.duration(item.every)
    if every is not None and not 0 < every <= 366 * 86_400_000_000:
        assert item.every is not None
        work.report(say.alert_span(item.every.span))
        return None
    by = tuple(key for key in keys if key is not None)
    if when is None or len(by) < len(keys):
        return None
    title = None if item.title is None else item.title.value
    return p.Monitor(item.id, item.span, item.name.text, title, when, by, every)


def label(work: Work, item: s.LabelStatement) -> p.EventLabel | None:
    """Check a label statement; None if it has errors."""
    name = item.label
    if name.text not in _LABELS:
        work.report(say.unknown_label(name.span, name.text, _LABELS))
    payment = value_for(work, _SCOPE, item.payment, t.String())
    if payment is not None and not isinstance(payment.type, t.String):
        work.report(say.needs_text(item.payment.span, "of", kind_of(payment.type)))
        payment = None
    when = condition(work, _SCOPE, item.when)
    if name.text not in _LABELS or payment is None or when is None:
        return None
    verdict = None if name.text == "none" else name.text
    return p.EventLabel(item.span, verdict, payment, when)  # type: ignore[arg-type]
