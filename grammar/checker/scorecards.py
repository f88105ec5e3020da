"""Check a scorecard's own statements: its baseline and its signals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.curves import MAX_CURVES, curve
from tollkeeper.grammar.checker.expressions import condition, value_for
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.words import kind_of

_SCOPE = Scope(score=False)


def baseline(work: Work, name: s.Identifier, items: Sequence[s.Baseline]) -> float:
    """Return the probability before any signal, between 0 and 1; 0.5 if it has errors."""
    if "baseline" in work.lost:
        return 0.5
    if not items:
        work.report(say.no_baseline(name.span))
        return 0.5
    for extra in items[1:]:
        work.report(say.second_baseline(extra.span))
    written = items[0].value
    if not isinstance(written, s.Number) or not 0 < float(written.text) < 1:
        value = Decimal(written.text) if isinstance(written, s.Number) else None
        work.report(say.baseline_range(written.span, value))
        return 0.5
    return float(written.text)


def signals(work: Work, items: Sequence[s.Signal]) -> tuple[p.Signal, ...]:
    """Return the signals without errors."""
    curves = [item for item in items if isinstance(item.adds, s.Curve)]
    for extra in curves[MAX_CURVES:]:
        work.report(say.too_many_curves(extra.name.span, MAX_CURVES))
    found = (_signal(work, item) for item in items)
    return tuple(each for each in found if each is not None)


def _signal(work: Work, item: s.Signal) -> p.Signal | None:
    adds = (
        curve(work, _SCOPE, item.adds)
        if isinstance(item.adds, s.Curve)
        else value_for(work, _SCOPE, item.adds, t.Number(None))
    )
    when = None if item.when is None else condition(work, _SCOPE, item.when)
    if adds is not None and not isinstance(adds.type, t.Number):
        work.report(say.adds_number(adds.span, kind_of(adds.type)))
        return None
    if adds is None or (item.when is not None and when is None):
        return None
    title = None if item.title is None else item.title.value
    return p.Signal(item.id, item.span, item.name.text, title, adds, when)
