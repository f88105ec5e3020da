"""Warn of tests that forget that an aggregate over history includes the current payment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic, Fix
from tollkeeper.grammar.fixes import inserting
from tollkeeper.grammar.types import Number

_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OF_EXTREMES = {
    ("max", ">"): False,
    ("max", "<="): True,
    ("min", "<"): False,
    ("min", ">="): True,
}


def counts_itself(
    work: Work, inner: Iterable[p.Expression], lets: Sequence[p.Let], numbers: Numbers
) -> Iterator[Diagnostic]:
    """Warn of comparisons with the same result for every payment, because the aggregate counts it
    too.
    """
    for part in inner:
        if not isinstance(part, p.Compare):
            continue
        for operator, left, right in (
            (part.operator, part.left, part.right),
            (_FLIPPED[part.operator], part.right, part.left),
        ):
            history, let = _history(left, lets)
            if history is None or not _holds_itself(history, numbers):
                continue
            outcome = _outcome(operator, history, right, numbers)
            if outcome is not None:
                fixes = _fixes(work, history, let)
                yield say.counts_itself(part.span, history.function, outcome, *fixes)
                break


def _history(node: p.Expression, lets: Sequence[p.Let]) -> tuple[p.History | None, p.Let | None]:
    """Return the aggregate that an expression or the let behind it is, with that let."""
    let = None
    while isinstance(node, p.LetValue):
        let = lets[node.index]
        node = let.value
    return (node, let) if isinstance(node, p.History) else (None, None)


def _holds_itself(history: p.History, numbers: Numbers) -> bool:
    series = history.series
    return (
        series.collection == "payments"
        and series.where is None
        and not history.earlier
        and history.over is not None
        and [*map(numbers.of, history.keys)] == [*map(numbers.of, series.by)]
    )


def _outcome(
    operator: str, history: p.History, other: p.Expression, numbers: Numbers
) -> bool | None:
    """Return the comparison's constant result; None if it varies."""
    if history.function == "count" and isinstance(other, p.Constant):
        return _of_count(operator, other)
    value = history.series.value
    if value is None or numbers.of(value) != numbers.of(other):
        return None
    # Swap the sides: `amount > max(…)` is `max(…) < amount`.
    return _OF_EXTREMES.get((history.function, _FLIPPED[operator]))


def _of_count(operator: str, other: p.Constant) -> bool | None:
    scale = other.type.scale if isinstance(other.type, Number) else None
    least = 10 ** (scale or 0)
    match operator:
        case "==" if other.value < least:
            return False
        case "<" if other.value <= least:
            return False
        case "<=" if other.value < least:
            return False
        case "!=" | ">" if other.value < least:
            return True
        case ">=" if other.value <= least:
            return True
        case _:
            return None


def _fixes(work: Work, history: p.History, let: p.Let | None) -> Iterator[Fix]:
    if let is None or let.source is None:
        opening = work.source.index("(", history.span.start)
        yield replace(inserting(opening + 1, "earlier "), title="say `earlier`")
