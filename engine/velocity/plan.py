"""From checked programs to the series and windows they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tollkeeper.engine.velocity.contract import CompiledSeries, CountedSeries, SeriesPlan, Window
from tollkeeper.grammar.program import (
    And,
    ArrivalFact,
    Call,
    DecisionFact,
    Expression,
    History,
    InList,
    LabelFact,
    Let,
    LetValue,
    Presence,
    Series,
    TableValue,
)
from tollkeeper.grammar.types import Boolean, Instant
from tollkeeper.grammar.walk import children

Compile: TypeAlias = Callable[[Series], CompiledSeries]
Digest: TypeAlias = Callable[[Series], str]
CountingCompiler: TypeAlias = Callable[
    [Mapping[str, tuple[Series, bool]]], Callable[[tuple[str, ...]], CountedSeries]
]
"""From a program's series by digest, each with whether it keeps missing values, to what makes one
function that counts those with given digests."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one program needs: its series, and the window of each of its histories, in their order.

    `own` says that all are over payments and read for the reading payment's own key.
    """

    series: tuple[SeriesPlan, ...]
    windows: tuple[Window, ...]
    own: bool = False


def plan(
    histories: Sequence[History],
    lets: Sequence[Let],
    compile_series: Compile,
    digest: Digest,
    compile_counting: CountingCompiler | None = None,
) -> Plan:
    """The plan of a program with these aggregates and lets."""
    compiled: dict[str, CompiledSeries] = {}
    counted: dict[str, tuple[Series, bool]] = {}
    counting = None if compile_counting is None else compile_counting(counted)
    plans = []
    windows = []
    for history in histories:
        series, three_valued = _stored_series(history)
        if history.function == "streak":
            series = _by_outcome(series)
        name = digest(series)
        if three_valued:
            name = f"truth:{name}"
        if history.half_life is not None:
            name = f"decay {history.half_life}:{name}"
        if name not in compiled:
            compiled[name] = compile_series(series)
        if series.event is None:
            counted[name] = (series, three_valued)
        read = [*_nodes_read(series, lets)]
        plans.append(
            SeriesPlan(
                digest=name,
                event=series.event,
                by=_by(series, digest),
                over=history.over,
                ages=history.over is None,
                decided=any(map(_is_of_decision, read)),
                looks_up=any(map(_is_looked_up, read)),
                labelled=any(map(_is_label, read)),
                valued=three_valued or series.value is not None,
                missing=three_valued,
                compiled=compiled[name],
                counting=counting if name in counted else None,
                distinct=_distinct(history),
                half_life=history.half_life,
            )
        )
        type_ = None if series.value is None else series.value.type
        window = Window(
            name, history.function, history.over, type_, history.earlier, history.half_life
        )
        windows.append(window)
    return Plan(
        merge_plans(plans), tuple(windows), all(_is_own(each, digest) for each in histories)
    )


def merge_plans(plans: Iterable[SeriesPlan]) -> tuple[SeriesPlan, ...]:
    """Each series once, with the longest window of its plans, and with ages when one of them has."""
    merged: dict[str, SeriesPlan] = {}
    for each in plans:
        other = merged.setdefault(each.digest, each)
        if other is each:
            continue
        lengths = [over for over in (each.over, other.over) if over is not None]
        merged[each.digest] = replace(
            other,
            over=max(lengths, default=None),
            ages=each.ages or other.ages,
            distinct=tuple(sorted({*each.distinct, *other.distinct})),
        )
    return tuple(merged.values())


def _distinct(history: History) -> tuple[int, ...]:
    return (history.over,) if history.function == "distinct" and history.over is not None else ()


def _stored_series(history: History) -> tuple[Series, bool]:
    """The series to store, and whether its values are the three-valued results of the `where`.

    `any` and `all` read the `where` of every record; other functions read the records for which it is
    definitely true.
    """
    series = history.series
    if history.function not in ("any", "all"):
        return series, False
    return replace(series, where=None, value=series.where), True


def _by_outcome(series: Series) -> Series:
    """A streak's series: the records' arrivals, grouped by the key and whether the `where` is met."""
    where = series.where
    assert where is not None
    is_present = Presence(where.id, where.span, Boolean(), where, "present")
    met = And(where.id, where.span, Boolean(), (is_present, where))
    arrival = ArrivalFact(where.id, where.span, Instant())
    return replace(series, by=(*series.by, met), where=None, value=arrival)


def _is_own(history: History, digest: Digest) -> bool:
    series = history.series
    keyed = replace(series, by=history.keys)
    # An `earlier` window is read before the record is counted, and counting finds the groups.
    is_counted = series.event is None and not history.earlier
    return is_counted and digest(keyed) == digest(series)


def _by(series: Series, digest: Digest) -> str:
    """The digest of the series' key; for events that of the whole series, as whether an event's data
    fits a series depends on all that it reads."""
    return digest(series if series.event else replace(series, where=None, value=None))


def _is_of_decision(node: Expression) -> bool:
    return isinstance(node, DecisionFact)


def _is_label(node: Expression) -> bool:
    return isinstance(node, LabelFact)


def _is_looked_up(node: Expression) -> bool:
    """Whether a value comes from the account's lists, tables or rates."""
    is_rate = isinstance(node, Call) and node.function == "amount_in"
    return is_rate or isinstance(node, InList | TableValue)


def _nodes_read(series: Series, lets: Sequence[Let]) -> Iterator[Expression]:
    """Everything in the expressions of the series and in the lets that they read, these once."""
    pending = [*children(series)]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)
        if isinstance(node, LetValue) and node.index not in seen:
            seen.add(node.index)
            pending.append(lets[node.index].value)
