"""All series of a program that count payments -> one function that brings a payment to them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.code import Code, tuple_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.expressions import statements, test, value, write_routines
from tollkeeper.engine.programs.compile.unit import Unit, count_reads, module
from tollkeeper.engine.velocity.contract import CountedSeries
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Vocabulary

_PARAMETERS = ("p", "d", "v", "e", "y")
_TIME = "t"
_PUTS = "puts"
_ENTRY = "count"


class Counting:
    """The series of one program, by digest; those with values of their own keep missing ones.

    `counting(digests)` counts these series. What several of them need is worked out once.
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
            made = self._made[digests] = self._compile([self._series[each] for each in digests])
        return made

    def _compile(self, chosen: Sequence[tuple[p.Series, bool]]) -> CountedSeries:
        roots = [part for series, _ in chosen for part in _parts(series)]
        made = module(_PARAMETERS, roots, self._digests, (), self._vocabulary)
        unit = Unit(made, count_reads(roots, made))
        names = [made.fresh("put") for _ in chosen]
        groups: dict[tuple[str, ...], Code] = {}
        positions = []
        for name, (series, missing) in zip(names, chosen, strict=True):
            by = tuple(map(made.digests.of, series.by))
            if by not in groups:
                groups[by] = _group(unit, series.by)
            positions.append(list(groups).index(by))
            _count(unit, name, groups[by], series, missing)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        unpacked = ast.Assign([ast.Tuple(targets, ast.Store())], code.name(_PUTS))
        found = ast.Return(tuple_of([Code(group.result) for group in groups.values()]))
        body = [unpacked, *made.start(), *unit.body, found]
        made.functions.append(code.function(_ENTRY, (*_PARAMETERS, _TIME, _PUTS), body))
        return CountedSeries(made.define(_ENTRY), tuple(positions))


def _parts(series: p.Series) -> list[p.Expression]:
    return [*series.by, *(part for part in (series.where, series.value) if part is not None)]


def _group(unit: Unit, by: Sequence[p.Expression]) -> Code:
    values = [unit.require(value(unit, part)) for part in by]
    write_routines(unit.module)
    needs = tuple(need for each in values for need in each.needs)
    parts = [Code(each.result) for each in values]
    whole = parts[0].result if len(parts) == 1 else tuple_of(parts)
    return unit.assign("group", Code(whole, needs))


def _count(unit: Unit, name: str, group: Code, series: p.Series, missing: bool) -> None:
    """The statement that puts a payment's element into one series."""
    needs = list(unit.require(group).needs)
    if series.where is not None:
        statements(unit, series.where)
        needs.append(test(unit, series.where, True))
        write_routines(unit.module)
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
