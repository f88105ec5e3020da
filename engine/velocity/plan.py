"""From checked programs to the series and windows they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeAlias

from tollkeeper.engine.velocity.contract import CompiledSeries, CountedSeries, SeriesPlan, Window
from tollkeeper.grammar.program import (
    And,
    ArrivalFact,
    Call,
    DecisionFact,
    History,
    InList,
    LabelFact,
    Let,
    LetValue,
    Node,
    Presence,
    Series,
    TableValue,
)
from tollkeeper.grammar.types import Boolean, Instant

Compile: TypeAlias = Callable[[Series], CompiledSeries]
Digest: TypeAlias = Callable[[Series], str]
CountingCompiler: TypeAlias = Callable[
    [Mapping[str, tuple[Series, bool]]], Callable[[tuple[str, ...]], CountedSeries]
]
"""From a program's series by digest, and whether they keep missing values, to what counts them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one program needs: its series, and a window for each of its histories in order.

    `own` says that each is read of payments, with the key that the reading payment has itself.
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
    """The plan of a program with these aggregates; `lets` are the program's own."""
    compiled: dict[str, CompiledSeries] = {}
    counted: dict[str, tuple[Series, bool]] = {}
    counting = None if compile_counting is None else compile_counting(counted)
    plans = []
    windows = []
    for history in histories:
        series, three_valued = _as_held(history)
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
        plans.append(
            SeriesPlan(
                digest=name,
                event=series.event,
                by=_by(series, digest),
                over=history.over,
                ages=history.over is None,
                decided=_holds(series, lets, _is_of_decision),
                looks_up=_holds(series, lets, _is_looked_up),
                labelled=_holds(series, lets, _is_label),
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
    """The plans with each series once: as long as the longest asks, with ages when one asks."""
    found: dict[str, SeriesPlan] = {}
    for each in plans:
        other = found.setdefault(each.digest, each)
        if other is each:
            continue
        lengths = [over for over in (each.over, other.over) if over is not None]
        found[each.digest] = replace(
            other,
            over=max(lengths, default=None),
            ages=each.ages or other.ages,
            distinct=tuple(sorted({*each.distinct, *other.distinct})),
        )
    return tuple(found.values())


def _distinct(history: History) -> tuple[int, ...]:
    return (history.over,) if history.function == "distinct" and history.over is not None else ()


def _as_held(history: History) -> tuple[Series, bool]:
    """The series to hold, and whether its values are the three-valued truths of the `where`.

    `any` and `all` look at each record's `where`, whatever it gives; the others at the records for
    which it is definitely true.
    """
    series = history.series
    if history.function not in ("any", "all"):
        return series, False
    return replace(series, where=None, value=series.where), True


def _by_outcome(series: Series) -> Series:
    """The arrivals of a streak's records, grouped by whether they meet its `where` as well."""
    where = series.where
    assert where is not None
    there = Presence(where.id, where.span, Boolean(), where, "present")
    met = And(where.id, where.span, Boolean(), (there, where))
    arrival = ArrivalFact(where.id, where.span, Instant())
    return replace(series, by=(*series.by, met), where=None, value=arrival)


def _is_own(history: History, digest: Digest) -> bool:
    series = history.series
    keyed = replace(series, by=history.keys)
    # What is read before the record is counted can't wait for the groups that counting gives.
    is_counted = series.event is None and not history.earlier
    return is_counted and digest(keyed) == digest(series)


def _by(series: Series, digest: Digest) -> str:
    """The identity of the series' key, within an event's type that of the whole series: which data
    fits a series depends on all that it reads."""
    return digest(series if series.event else replace(series, where=None, value=None))


def _is_of_decision(node: Node) -> bool:
    return isinstance(node, DecisionFact)


def _is_label(node: Node) -> bool:
    return isinstance(node, LabelFact)


def _is_looked_up(node: Node) -> bool:
    """Whether a value comes from what the account has configured."""
    is_rate = isinstance(node, Call) and node.function == "amount_in"
    return is_rate or isinstance(node, InList | TableValue)


def _holds(series: Series, lets: Sequence[Let], is_wanted: Callable[[Node], bool]) -> bool:
    """Whether one of a series' expressions holds such a part."""
    waiting: list[object] = [series]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and is_wanted(node):
            return True
        if isinstance(node, LetValue) and node.index not in seen:
            seen.add(node.index)
            waiting.append(lets[node.index].value)
        if isinstance(node, tuple):
            waiting.extend(node)
        elif is_dataclass(node):
            waiting.extend(getattr(node, field.name) for field in fields(node))
    return False
