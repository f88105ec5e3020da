"""Count windows whose keys, tests and values can be computed in SQL.

The elements of all payments in a series are computed at once. The series are those of live traffic,
and get the elements in the same order.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp

from tollkeeper.engine.columns.carried import carried_values
from tollkeeper.engine.columns.write import ROW_GROUP
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.offline.backtest.plan import ReplayPlan
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    NotExactError,
    guarded,
    sql_call,
    sql_is_there,
    sql_join,
    sql_of,
)
from tollkeeper.engine.offline.columns.translate import Translation
from tollkeeper.engine.offline.columns.window_values import translation_of
from tollkeeper.engine.velocity.contract import Group, SeriesPlan
from tollkeeper.engine.velocity.series import FASTEST, Series
from tollkeeper.engine.velocity.series_set import SeriesSet
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Expression, History, Rule, Scorecard, Value

_SHARED = ("came", "at", "payment", "is_new", "is_told", "is_read")
_Element: TypeAlias = tuple[Any, Any]
_Row: TypeAlias = tuple[int, int, int, bool, bool, bool, Any, bool, Any]
"""A row: its arrival and the payment's event time (µs), the payment's number, whether it is the
creation, whether the payment has updates, whether it reads, its group, whether it has an element,
and the element's value.
"""
_TimedElement: TypeAlias = tuple[int, _Element | None]
"""A payment's event time (µs) and its element."""


@dataclass(frozen=True, slots=True)
class BroughtElement:
    """SQL for a payment's element in a series: whether it has one, and its value, of type `kind`."""

    plan: SeriesPlan
    brings: str
    value: str
    kind: t.Type


@dataclass(frozen=True, slots=True)
class BroughtRows:
    """SQL for the elements of rows of `happened` in series with the same `keys`; `guards` is the
    SQL test whether these are exact for all rows.
    """

    keys: tuple[str, ...]
    elements: tuple[BroughtElement, ...]
    guards: str


def says_window(history: History, translation: Translation) -> bool:
    """Whether a window's elements and groups can be computed in SQL."""
    try:
        _brought_keys(history, translation)
        _brought_element(history, translation)
    except (NotExactError, RecursionError):
        return False
    return (
        history.series.collection == "payments"
        and history.series.event is None
        and history.over is not None
    )


def brought_rows(
    program: Rule | Scorecard, histories: Sequence[History], plan: ReplayPlan, facts: FactRows
) -> BroughtRows:
    """The elements of windows with the same keys, all of which SQL can compute."""
    translation = translation_of(program, facts)
    windows = dict(zip((each.series for each in plan.reading.plan.windows), histories, strict=True))
    elements = []
    for each in plan.series:
        brings, value, kind = _brought_element(windows[each.digest], translation)
        elements.append(BroughtElement(each, sql_of(brings), sql_of(value), kind))
    keys = tuple(sql_of(key) for key in _brought_keys(histories[0], translation))
    return BroughtRows(keys, tuple(elements), guarded(translation.guards))


def _brought_keys(history: History, translation: Translation) -> list[exp.Expression]:
    return [_translate_integer(key, translation) for key in history.keys]


def _brought_element(
    history: History, translation: Translation
) -> tuple[exp.Expression, exp.Expression, t.Type]:
    """SQL for whether a payment has an element, and for its value; and the value's type."""
    series, looks_at_all = history.series, history.function in ("any", "all")
    # `any` and `all` need the result of the test for each record.
    test, value = (None, series.where) if looks_at_all else (series.where, series.value)
    brought = exp.true() if value is None else _translate_integer(value, translation)
    tests = (
        []
        if test is None
        else [sql_call("coalesce", _translate_integer(test, translation), exp.false())]
    )
    if value is not None and not looks_at_all:
        tests.append(sql_is_there(brought.copy()))
    brings = sql_join(exp.And, tests) if tests else exp.true()
    return brings, brought, t.Boolean() if value is None else value.type


def _translate_integer(node: Expression, translation: Translation) -> exp.Expression:
    translated = translation.say(node)
    if not isinstance(node.type, t.Number) or node.type.scale is None:
        return translated.value
    if translated.largest >= SMALL:
        raise NotExactError("numbers of more than 64 bits")
    return exp.cast(exp.paren(translated.value), "BIGINT")


def read_columns(
    brought: BroughtRows, plan: ReplayPlan, tables: Any, rows: str, reads: str
) -> Iterator[tuple[list[int], list[list[Value | None]]]]:
    """The sequence numbers of the rows for which `reads` is true, and their values in each window."""
    told_of = f"payment IN (SELECT payment FROM ({rows}) WHERE kind = {Kind.UPDATE:d})"
    columns = {
        "place": "place",
        "payment": "payment",
        "came": "came",
        "at": "happened_at",
        "is_new": f"kind = {Kind.PAYMENT:d}",
        "is_read": reads,
        "is_told": "FALSE" if plan.changing is None else told_of,
        **{f"key_{number}": key for number, key in enumerate(brought.keys)},
        **{f"brings_{number}": each.brings for number, each in enumerate(brought.elements)},
        **{f"value_{number}": each.value for number, each in enumerate(brought.elements)},
    }
    selected = ", ".join(f"{column} AS {name}" for name, column in columns.items())
    query = f"SELECT {selected} FROM ({rows}) AS seen ORDER BY place"
    counting = [_CountedSeries(each, plan) for each in brought.elements]
    for batch in tables.cursor().sql(query).to_arrow_reader(ROW_GROUP):
        held = {name: batch.column(name) for name in columns}
        shared = [held[name].to_pylist() for name in _SHARED]
        groups = _groups([held[f"key_{number}"] for number in range(len(brought.keys))])
        found: dict[int, list[Value | None]] = {}
        for number, each in enumerate(counting):
            brings = held[f"brings_{number}"]
            values = _values(brought.elements[number].kind, held[f"value_{number}"])
            found |= each.count(zip(*shared, groups, brings.to_pylist(), values, strict=True))
        places = held["place"].filter(held["is_read"]).to_pylist()
        yield places, [found[index] for index in sorted(found)]


def _groups(keys: Sequence[Any]) -> list[Group | None]:
    """Each row's group, None when a part of its key is missing."""
    parts = [each.to_pylist() for each in keys]
    if len(parts) == 1:
        return [*parts[0]]
    return [None if None in key else key for key in zip(*parts, strict=True)]


def _values(kind: t.Type, column: Any) -> list[Any]:
    values = column.to_pylist()
    return carried_values(kind, values) if isinstance(kind, t.Ip) else values


class _CountedSeries:
    """A series of a plan, and how the windows over it are read."""

    def __init__(self, element: BroughtElement, plan: ReplayPlan) -> None:
        over, clock = element.plan.over, FASTEST.clock()
        assert over is not None
        self._series = Series(element.plan, over, 0, plan.late, clock, FASTEST)
        self._set = SeriesSet({element.plan.digest: self._series}, {}, clock, FASTEST.queue())
        self._late, self._reach = plan.late, over + plan.late
        windows = enumerate(plan.reading.plan.windows)
        own = [(index, each) for index, each in windows if each.series == element.plan.digest]
        self._earlier = {at: self._series.reader(each) for at, each in own if each.earlier}
        self._readers = {at: self._series.reader(each) for at, each in own if not each.earlier}
        # The elements of payments with updates, as long as a window reaches them.
        self._known: dict[int, _TimedElement] = {}

    def count(self, rows: Iterable[_Row]) -> dict[int, list[Value | None]]:
        """The values that the reading rows find in each window, by the window's index."""
        found = {index: list[Value | None]() for index in (*self._earlier, *self._readers)}
        earlier = [(found[index].append, read) for index, read in self._earlier.items()]
        later = [(found[index].append, read) for index, read in self._readers.items()]
        arrive, put, clock, late = self._set.arrive, self._series.put, self._set.clock, self._late
        known = self._known
        for arrived, at, payment, is_new, is_told, is_read, group, brings, value in rows:
            arrive(arrived)
            counts = brings and group is not None
            can_read = is_read and group is not None and at >= clock.newest - late
            if is_read:
                for append, read in earlier:
                    append(read(group, at) if can_read else None)
            if not is_new:
                self._change(payment, at, (group, value) if counts else None)
            elif counts:
                put(at, group, value)
            if is_told and is_new:
                known[payment] = at, (group, value) if counts else None
            if is_read:
                for append, read in later:
                    append(read(group, at) if can_read else None)
        self._forget(clock.newest - self._reach)
        return found

    def _change(self, payment: int, at: int, element: _Element | None) -> None:
        """Replace a payment's element."""
        was = self._known.get(payment)
        if was is None or was[1] == element:
            return
        if was[1] is not None:
            self._series.take(at, *was[1])
        if element is not None:
            self._series.put(at, *element)
        self._known[payment] = at, element

    def _forget(self, horizon: int) -> None:
        """Drop elements up to the event time `horizon` (µs), which no window reaches any more."""
        held = self._known.items()
        self._known = {payment: each for payment, each in held if each[0] > horizon}
