"""Compile a program's series over payments or transactions into one function that counts a payment."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.code import Code, tuple_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.expressions import statements, test, value, write_routines
from tollkeeper.engine.programs.compile.folds import each_element
from tollkeeper.engine.programs.compile.sharing import same_for_all
from tollkeeper.engine.programs.compile.unit import Unit, count_reads, module
from tollkeeper.engine.velocity.contract import CountedSeries
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Vocabulary

_PARAMETERS = ("p", "d", "v", "e", "y")
_TIME = "t"
_PUTS = "puts"
_ENTRY = "count"

_Key: TypeAlias = tuple[str, ...]
"""The digests of a series' `by`."""


class Counting:
    """The series of one program, by digest; those with values of their own keep missing ones.

    `counting(digests)` gives the functions for these series. Parts that several need are computed
    once.
    """

    def __init__(
        self,
        series: Mapping[str, tuple[p.Series, bool]],
        digests: Digests,
        vocabulary: Vocabulary,
    ) -> None:
        self._series = series
        self._digests = digests
        self._vocabulary = vocabulary
        self._made: dict[tuple[str, ...], CountedSeries] = {}

    def __call__(self, digests: tuple[str, ...]) -> CountedSeries:
        made = self._made.get(digests)
        if made is None:
            made = self._made[digests] = self._counted([self._series[each] for each in digests])
        return made

    def _counted(self, chosen: Sequence[tuple[p.Series, bool]]) -> CountedSeries:
        keys = [tuple(map(self._digests.of, series.by)) for series, _ in chosen]
        every = tuple(dict.fromkeys(keys))
        # Without a `where`, nearly every payment has an element: testing for one first would be in vain.
        tested_first = {*keys} - {
            key for key, (series, _) in zip(keys, chosen, strict=True) if series.where is None
        }
        return CountedSeries(
            tuple(map(every.index, keys)),
            self._function(chosen, keys, on_demand=(), returned=every),
            partial(self._function, chosen, keys, on_demand=tested_first, returned=()),
        )

    def _function(
        self,
        chosen: Sequence[tuple[p.Series, bool]],
        keys: Sequence[_Key],
        *,
        on_demand: Collection[_Key],
        returned: Iterable[_Key],
    ) -> Callable[..., Any]:
        """A function that counts a payment and returns its groups by the keys `returned`; those by
        the keys `on_demand` are computed for elements alone."""
        roots = [part for series, _ in chosen for part in _parts_to_share(series)]
        made = module(_PARAMETERS, roots, self._digests, (), self._vocabulary)
        written = [
            part for series, _ in chosen for part in (*series.by, *_parts_of_element(series))
        ]
        unit = Unit(made, count_reads(written, made))
        in_loop = Unit(made, unit.reads, outside=unit)
        names = [made.fresh("put") for _ in chosen]
        groups: dict[_Key, Code] = {}
        for name, key, (series, missing) in zip(names, keys, chosen, strict=True):
            if key not in groups:
                group = _key(unit, series.by)
                groups[key] = _ask(unit, group) if key in on_demand else unit.assign("group", group)
            if series.collection == "payments":
                _count(unit, name, groups[key], series, missing)
        # Nothing outside the loop can use what it computes, so the loop comes last.
        for name, key, (series, missing) in zip(names, keys, chosen, strict=True):
            if series.collection == "transactions":
                _count(in_loop, name, groups[key], series, missing)
        if in_loop.body:
            elements = unit.field("p", self._vocabulary.payment, ("transactions",))
            unit.body.append(each_element(elements, in_loop.body))
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        unpacked = ast.Assign([ast.Tuple(targets, ast.Store())], code.name(_PUTS))
        found = ast.Return(tuple_of([Code(groups[key].result) for key in returned]))
        body = [unpacked, *made.start(), *unit.body, found]
        made.functions.append(code.function(_ENTRY, (*_PARAMETERS, _TIME, _PUTS), body))
        return made.define(_ENTRY)


def _parts_of_element(series: p.Series) -> list[p.Expression]:
    return [part for part in (series.where, series.value) if part is not None]


def _parts_to_share(series: p.Series) -> list[p.Expression]:
    """The parts with one value a payment; of those evaluated for each transaction, what reads none."""
    inner = _parts_of_element(series)
    if series.collection == "payments":
        return [*series.by, *inner]
    same = [each for part in inner for each in same_for_all(part)]
    # Evaluated again for each transaction.
    return [*series.by, *same, *same]


def _key(unit: Unit, by: Sequence[p.Expression]) -> Code:
    values = [unit.require(value(unit, part)) for part in by]
    write_routines(unit.module)
    needs = tuple(need for each in values for need in each.needs)
    parts = [Code(each.result) for each in values]
    whole = parts[0].result if len(parts) == 1 else tuple_of(parts)
    return Code(whole, needs)


def _ask(unit: Unit, group: Code) -> Code:
    """The group, computed where it is first needed."""
    local = unit.fresh("group")
    unit.body.append(code.assign(local, code.constant(...)))
    is_known = code.compare_code("is not", code.name(local), code.constant(...))
    found = code.bind(local, group.expression())
    return Code(
        code.name(local), (code.is_there(code.either_value(is_known, code.name(local), found)),)
    )


def _count(unit: Unit, name: str, group: Code, series: p.Series, missing: bool) -> None:
    """The statement that puts a payment's element into one series."""
    needs = []
    if series.where is not None:
        statements(unit, series.where)
        needs.append(test(unit, series.where, True))
        write_routines(unit.module)
    needs += unit.require(group).needs
    brought = Code(code.TRUE)
    if series.value is not None:
        if series.where is None:
            statements(unit, series.value)
        brought = value(unit, series.value)
        if not missing:
            brought = unit.require(brought)
            needs += brought.needs
        write_routines(unit.module)
    put = code.call(
        name,
        code.name(_TIME),
        group.result,
        brought.expression() if missing else brought.result,
    )
    unit.body.append(code.when(code.both(needs), [ast.Expr(put)]))
