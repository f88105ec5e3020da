"""Compile checked programs into functions that decide, score, read history and group records.

The parameters of generated functions: `p` facts, `s` the score in hundredths, `h` the values of
the program's histories in their order, `e` the account's environment; `x` a transaction, `d` a
decision, `v` the data of an event by field, `y` the payment's label, carried as `types.py` says.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
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


def compile_rule(
    rule: p.Rule, vocabulary: Vocabulary, digests: Digests | None = None
) -> Callable[[Any, int | None, Sequence[Value | None], Environment], int]:
    """The rule as a function of (p, s, h, e) that gives the index of the met condition, -1 when none
    is. `digests` are the rule's, computed here if they are not given."""
    digests = digests or Digests(rule.lets)
    roots = [condition.when for condition in rule.conditions]
    made = module(("p", "s", "h", "e"), roots, digests, rule.histories, vocabulary)
    unit = Unit(made, count_reads(roots, made))
    for index, condition in enumerate(rule.conditions):
        statements(unit, condition.when)
        met = test(unit, condition.when, True)
        unit.body.append(code.when(met, [ast.Return(code.constant(index))]))
        write_routines(made)
    return finish_unit(unit, code.constant(_NO_CONDITION))


def compile_scorecard(
    scorecard: p.Scorecard, vocabulary: Vocabulary, digests: Digests | None = None
) -> Callable[[Any, Sequence[Value | None], Environment], int]:
    """The scorecard as a function of (p, h, e) that gives the score in hundredths. `digests` are the
    scorecard's, computed here if they are not given."""
    digests = digests or Digests(scorecard.lets)
    roots = [
        part for each in scorecard.signals for part in (each.when, each.adds) if part is not None
    ]
    made = module(("p", "h", "e"), roots, digests, scorecard.histories, vocabulary)
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
    program: p.Rule | p.Scorecard | p.EventType, digests: Digests, vocabulary: Vocabulary
) -> Callable[..., tuple[Key | None, ...]]:
    """A function that gives the keys of each history, None where one is missing.

    It takes (p, e), and for an event type (p, v, e).
    """
    parameters = ("p", "v", "e") if isinstance(program, p.EventType) else ("p", "e")
    keys = [history.keys for history in program.histories]
    return compile_keys(parameters, keys, digests, vocabulary)


def compile_monitor(
    monitor: p.Monitor, event: p.EventType, digests: Digests, vocabulary: Vocabulary
) -> Callable[[Any, Any, Sequence[Value | None], Environment], bool | None]:
    """The condition of an event type's monitor as a function of (p, v, h, e), None when missing; for
    events `p` only needs `arrived`."""
    made = module(("p", "v", "h", "e"), [monitor.when], digests, event.histories, vocabulary)
    unit = Unit(made, count_reads([monitor.when], made))
    return finish_unit(unit, _statement(unit, monitor.when).expression())


def compile_labels(
    event: p.EventType, vocabulary: Vocabulary
) -> Callable[[Any, Any, Sequence[Value | None], Environment], tuple[Value | None, ...]]:
    """A function of (p, v, h, e) that gives, for each label, whether its condition is met and the
    payment's id."""
    expressions = [part for each in event.labels for part in (each.when, each.payment)]
    parameters = ("p", "v", "h", "e")
    return compile_values(expressions, event.lets, event.histories, vocabulary, parameters)


def compile_values(
    expressions: Sequence[p.Expression],
    lets: Sequence[p.Let],
    histories: Sequence[p.History],
    vocabulary: Vocabulary,
    parameters: tuple[str, ...] = ("p", "s", "h", "e"),
) -> Callable[[Any, Any, Sequence[Value | None], Environment], tuple[Value | None, ...]]:
    """A function of the parameters that gives the value of each expression."""
    made = module(parameters, expressions, Digests(lets), histories, vocabulary)
    unit = Unit(made, count_reads(expressions, made))
    found = [_statement(unit, node) for node in expressions]
    return finish_unit(unit, tuple_of(found))


def _statement(unit: Unit, node: p.Expression) -> Code:
    """The value, computed by a statement of its own."""
    statements(unit, node)
    found = unit.assign("value", value(unit, node))
    write_routines(unit.module)
    return found
