"""Check a signal's curve: its bounds ascend, and its amounts rise or fall as declared."""

from __future__ import annotations

from itertools import pairwise

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals
from tollkeeper.grammar.checker.expressions import value_for
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.words import kind_of

MAX_CURVES = 40
MAX_STEPS = 12
"""Including the last step, which is beyond all bounds."""


def curve(work: Work, scope: Scope, node: s.Curve) -> p.Curve | None:
    """Check a curve; None if it has errors."""
    steps = len(node.steps) + 1
    if steps > MAX_STEPS:
        work.report(say.curve_too_long(node.span, steps, MAX_STEPS))
        return None
    value = value_for(work, scope, node.value, t.Number(None))
    if value is not None and not isinstance(value.type, (t.Number, t.Duration)):
        work.report(say.curve_value(value.span, kind_of(value.type)))
        return None
    bounds = [_bound(work, step, value) for step in node.steps]
    amounts = [_amount(work, each) for each in (*(step.adds for step in node.steps), node.beyond)]
    absent = None if node.absent is None else _amount(work, node.absent)
    if value is None or (absent is None and node.absent is not None):
        return None
    found = tuple(each for each in bounds if each is not None)
    added = tuple(each for each in amounts if each is not None)
    if len(found) < len(bounds) or len(added) < len(amounts):
        return None
    if not _ascend(work, found) or not _keep_to(work, node.direction, added):
        return None
    return p.Curve(node.id, node.span, t.Number(None), value, node.direction, found, added, absent)


def _bound(work: Work, step: s.CurveStep, value: p.Expression | None) -> p.Constant | None:
    if step.sign != "<":
        work.report(say.curve_sign(step.span, step.sign))
        return None
    if not literals.is_literal(step.bound):
        work.report(say.curve_literal(step.bound.span))
        return None
    return literals.meeting(work, step.bound, value)


def _amount(work: Work, node: s.Expression) -> p.Constant | None:
    constant = literals.read(work, node) if literals.is_literal(node) else None
    if constant is not None and isinstance(constant.type, t.Number):
        return constant
    work.report(say.curve_literal(node.span))
    return None


def _ascend(work: Work, bounds: tuple[p.Constant, ...]) -> bool:
    for before, after in pairwise(bounds):
        if literals.decimal(after) <= literals.decimal(before):
            work.report(say.curve_order(after.span, work.text(before.span), work.text(after.span)))
            return False
    return True


def _keep_to(work: Work, direction: str | None, amounts: tuple[p.Constant, ...]) -> bool:
    for before, after in pairwise(amounts):
        rise = literals.decimal(after) - literals.decimal(before)
        if (direction == "rising" and rise < 0) or (direction == "falling" and rise > 0):
            written = work.text(before.span), work.text(after.span)
            work.report(say.curve_direction(after.span, direction, *written))
            return False
    return True
