"""Compile a history's series: the group that a record belongs to, and its values there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tollkeeper.engine.facts.fields_read import Access, facts_of_series, parts_of_series, parts_read
from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.code import Code, tuple_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.expressions import statements, test, value, write_routines
from tollkeeper.engine.programs.compile.keys import Key, compile_keys
from tollkeeper.engine.programs.compile.unit import Unit, count_reads, finish_unit, module
from tollkeeper.engine.programs.event_contract import Contract, Data
from tollkeeper.grammar import program as p
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class CompiledSeries:
    """`p` are a record's facts, `d` its decision, `v` the data of an event by field, `e` the
    environment of its arrival, `y` the payment's label.

    `key(p, d, v, e, y)` is the record's group, None when a part of it is missing. `values(p, d, v,
    e, y)` has an item for each element for which the `where` is definitely true: the payment or
    event itself, or each transaction of a `transactions` series. An item is the value, None when it
    is missing, and True where the series takes no value. `facts` are those of a payment that they
    read.
    """

    key: Callable[[Any, Any, Any, Any, Any], Key | None]
    values: Callable[[Any, Any, Any, Any, Any], tuple[Value | None, ...]]
    facts: frozenset[Access]


def compile_series(series: p.Series, digests: Digests, vocabulary: Vocabulary) -> CompiledSeries:
    """The series as functions; `digests` are those of the program that holds it."""
    elements = vocabulary.payment["transactions"].access
    of_element = _compile_element(series, digests, vocabulary)
    keys = compile_keys(("p", "v", "e"), [series.by], digests, vocabulary)

    def key(p: Any, _d: Any, v: Any, e: Any, _y: Any) -> Key | None:
        return keys(p, v, e)[0]

    def of_record(p: Any, d: Any, v: Any, e: Any, y: Any) -> tuple[Value | None, ...]:
        return of_element(p, None, d, v, e, y)

    def of_transactions(p: Any, d: Any, v: Any, e: Any, y: Any) -> tuple[Value | None, ...]:
        found = p
        for attribute in elements:
            found = None if found is None else getattr(found, attribute)
        return tuple(value for x in found or () for value in of_element(p, x, d, v, e, y))

    is_inner = series.collection == "transactions"
    values = of_transactions if is_inner else of_record
    return CompiledSeries(key, values, facts_of_series(series, digests.lets, vocabulary))


def _compile_element(
    series: p.Series, digests: Digests, vocabulary: Vocabulary
) -> Callable[[Any, Any, Any, Any, Any, Any], tuple[Value | None, ...]]:
    """The value of one element as a function of (p, x, d, v, e, y): one item or none."""
    roots = [part for part in (series.where, series.value) if part is not None]
    made = module(("p", "x", "d", "v", "e", "y"), roots, digests, (), vocabulary)
    unit = Unit(made, count_reads(roots, made))
    if series.where is not None:
        statements(unit, series.where)
        refused = code.opposite(test(unit, series.where, True))
        unit.body.append(code.when(refused, [ast.Return(tuple_of([]))]))
    brought = Code(code.TRUE) if series.value is None else value(unit, series.value)
    write_routines(made)
    return finish_unit(unit, tuple_of([brought]))


def fit_series(compiled: CompiledSeries, series: p.Series, lets: Sequence[p.Let]) -> CompiledSeries:
    """The series, made to treat a field as missing where a record's version gave it another type."""
    read = parts_read(parts_of_series(series), lets)
    kinds = {each.name: type(each.type) for each in read if isinstance(each, p.EventFact)}
    others: dict[Contract, frozenset[str]] = {}

    def other_in(contract: Contract) -> frozenset[str]:
        known = contract.kinds
        other = frozenset(n for n, kind in kinds.items() if known.get(n, kind) is not kind)
        others[contract] = other
        return other

    def fitting(function: Callable[..., Any]) -> Callable[..., Any]:
        def of_fitted(p_: Any, d: Any, v: Data, e: Any, y: Any) -> Any:
            other = others.get(v.contract)
            if other is None:
                other = other_in(v.contract)
            if not other:
                return function(p_, d, v, e, y)
            return function(p_, d, {name: v[name] for name in v if name not in other}, e, y)

        return of_fitted

    return CompiledSeries(fitting(compiled.key), fitting(compiled.values), compiled.facts)
