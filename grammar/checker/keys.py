"""Warn of aggregates over history whose keys don't group as the author probably thinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic

_FINGERPRINT = ("method", "card", "fingerprint")
_A_WEEK = 7 * 86_400_000_000


def odd_keys(
    work: Work, inner: Iterable[p.Expression], numbers: Numbers, *, is_rule: bool
) -> Iterator[Diagnostic]:
    """Return the warnings of aggregates among the parts of an expression.

    Only rules are checked for weak keys: definitions name what they count.
    """
    for part in inner:
        if not isinstance(part, p.History):
            continue
        series = part.series
        keys = [*map(numbers.of, series.by)]
        if (
            part.function == "distinct"
            and series.value is not None
            and numbers.of(series.value) in keys
        ):
            yield say.distinct_of_key(part.span, work.text(series.value.span))
        is_long = part.over is None or part.over > _A_WEEK
        if is_rule and is_long and len(series.by) == 1 and _is_fingerprint(series.by[0]):
            yield say.weak_key(series.by[0].span)


def _is_fingerprint(key: p.Expression) -> bool:
    return isinstance(key, p.Fact) and key.path == _FINGERPRINT
