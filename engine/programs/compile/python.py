"""Compile checked programs into functions that decide, score, read history and group records.

The parameters of generated functions: `p` facts, `s` the score in hundredths, `h` the values of
the program's histories in their order, `e` the account's environment; `x` a transaction, `d` a
decision, `v` the data of an event by field, `y` the payment's label, carried as `types.py` says.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile import code, numbers
from tollkeeper.engine.programs.compile.code import Code, tuple_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.expressions import statements, test, value, write_routines
from tollkeeper.engine.programs.compile.keys import Key, compile_keys
from tollkeeper.engine.programs.compile.unit import Unit, count_reads, finish_unit, module
from tollkeeper.grammar import program as p
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.vocabulary import Vocabulary

_NO_CONDITION = -1


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """`decide(p, s, h, e)` gives the index of the met condition, -1 when none is."""

    rule: p.Rule
    decide: Callable[[Any, int | None, Sequence[Value | None], Environment], int]


@dataclass(frozen=True, slots=True)
class CompiledMonitor:
    """`when(p, v, h, e)` is true, false or missing; `key(p, v, e)` is None when a part is missing.

    For events `p` only needs `arrived`.
    """

    monitor: p.Monitor
    when: Callable[[Any, Any, Sequence[Value | None], Environment], bool | None]
    key: Callable[[Any, Any, Environment], Key | None]


def compile_rule(rule: p.Rule, vocabulary: Vocabulary) -> CompiledRule:
    """The rule as one function."""
    roots = [condition.when for condition in rule.conditions]
    made = module(("p", "s", "h", "e"), roots, Digests(rule.lets), rule.histories, vocabulary)
    unit = Unit(made, count_reads(roots, made))
    for index, condition in enumerate(rule.conditions):
        statements(unit, condition.when)
        met = test(unit, condition.when, True)
        unit.body.append(code.when(met, [ast.Return(code.constant(index))]))
        write_routines(made)
    return CompiledRule(rule, finish_unit(unit, code.constant(_NO_CONDITION)))


def compile_scorecard(
    scorecard: p.Scorecard, vocabulary: Vocabulary
) -> Callable[[Any, Sequence[Value | None], Environment], int]:
    """The scorecard as a function of (p, h, e) that gives the score in hundredths."""
    roots = [
        part for each in scorecard.signals for part in (each.when, each.adds) if part is not None
    ]
    made = module(("p", "h", "e"), roots, Digests(scorecard.lets), scorecard.histories, vocabulary)
    unit = Unit(made, count_reads(roots, made))
    total = unit.fresh("total")
    baseline = scorecard.baseline
    unit.body.append(code.assign(total, code.constant(math.log(baseline / (1 - baseline)))))
    for signal in scorecard.signals:
        statements(unit, signal.adds if signal.when is None else signal.when)
        tests = [] if signal.when is None else [test(unit, signal.when, True)]
        scale = numbers.scale_of(signal.adds)
        adds = unit.require(numbers.at_scale(unit, value(unit, signal.adds), scale, None))
        more = ast.AugAssign(ast.Name(total, ast.Store()), ast.Add(), adds.result)
        needed = (*tests, *adds.needs)
        unit.body.append(code.when(code.both(needed), [more]))
        write_routines(made)
    return finish_unit(unit, code.call("score", code.name(total)))


def compile_reads(
    program: p.Rule | p.Scorecard | p.EventType, vocabulary: Vocabulary
) -> Callable[..., tuple[Key | None, ...]]:
    """A function that gives the keys of each history, None where one is missing.

    It takes (p, e), and for an event type (p, v, e).
    """
    parameters = ("p", "v", "e") if isinstance(program, p.EventType) else ("p", "e")
    keys = [history.keys for history in program.histories]
    return compile_keys(parameters, keys, Digests(program.lets), vocabulary)


def compile_monitors(event: p.EventType, vocabulary: Vocabulary) -> tuple[CompiledMonitor, ...]:
    """The monitors of an event type."""
    digests = Digests(event.lets)
    return tuple(_compile_monitor(each, event, digests, vocabulary) for each in event.monitors)


def compile_labels(
    event: p.EventType, vocabulary: Vocabulary
) -> Callable[[Any, Any, Sequence[Value | None], Environment], tuple[Value | None, ...]]:
    """A function of (p, v, h, e) that gives, for each label, whether its condition is met and the
    payment's id."""
    expressions = [part for each in event.labels for part in (each.when, each.payment)]
    made = module(
        ("p", "v", "h", "e"), expressions, Digests(event.lets), event.histories, vocabulary
    )
    unit = Unit(made, count_reads(expressions, made))
    found = [_statement(unit, node) for node in expressions]
    return finish_unit(unit, tuple_of(found))


def compile_values(
    expressions: Sequence[p.Expression],
    lets: Sequence[p.Let],
    histories: Sequence[p.History],
    vocabulary: Vocabulary,
) -> Callable[[Any, int | None, Sequence[Value | None], Environment], tuple[Value | None, ...]]:
    """A function of (p, s, h, e) that gives the value of each expression."""
    made = module(("p", "s", "h", "e"), expressions, Digests(lets), histories, vocabulary)
    unit = Unit(made, count_reads(expressions, made))
    found = [_statement(unit, node) for node in expressions]
    return finish_unit(unit, tuple_of(found))


def _compile_monitor(
    monitor: p.Monitor, event: p.EventType, digests: Digests, vocabulary: Vocabulary
) -> CompiledMonitor:
    roots = [monitor.when]
    made = module(("p", "v", "h", "e"), roots, digests, event.histories, vocabulary)
    unit = Unit(made, count_reads(roots, made))
    when = finish_unit(unit, _statement(unit, monitor.when).expression())
    keys = compile_keys(("p", "v", "e"), [monitor.by], digests, vocabulary)

    def key(p: Any, v: Any, e: Environment) -> Key | None:
        return keys(p, v, e)[0]

    return CompiledMonitor(monitor, when, key)


def _statement(unit: Unit, node: p.Expression) -> Code:
    """The value, computed by a statement of its own."""
    statements(unit, node)
    found = unit.assign("value", value(unit, node))
    write_routines(unit.module)
    return found
