"""Faults planted in the compiler are found by comparing it with the interpreter, on generated
programs and on the lines of the semantics tables.

A fault is a replaced piece of source; the functions of the module take the code that comes of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from types import FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.programs.compile import (
    calls,
    code,
    expressions,
    folds,
    numbers,
    predicates,
    sharing,
    unit,
)
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.python import compile_rule, compile_values
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.grammar import program as p
from tollkeeper.tests.engine.programs.compile.payments import VOCABULARY, Situation, situation
from tollkeeper.tests.engine.programs.compile.programs import rules
from tollkeeper.tests.engine.programs.compile.test_agreement import (
    opposites_of,
    same,
    scalars,
    scope_of,
)
from tollkeeper.tests.semantics.test_semantics import lines, program_of, situation_of

PROGRAMS = 100
PAYMENTS = 12

FAULTS: list[tuple[ModuleType, str, str]] = [
    (expressions, "return test(unit, node.operand, not wanted)", "return test(unit, node.operand, wanted)"),
    (expressions, "code.both if isinstance(node, p.And) is wanted", "code.both if isinstance(node, p.And)"),
    (expressions, "decisive = code.constant(isinstance(node, p.Or))", "decisive = code.constant(True)"),
    (expressions, "otherwise = code.either_value(missing, code.NONE_NODE,", "otherwise = code.either_value(missing, decisive,"),
    (expressions, "left, right = unit.require(left), unit.require(right)", "pass"),
    (expressions, 'replace(node, operator="==")', "node"),
    (expressions, "affirmed = replace(node, negated=False)", "affirmed = node"),
    (expressions, 'node.operator == "=="):', 'node.operator == "!="):'),
    (expressions, 'p.Compare(node.id, node.span, node.type, "<=", node.low, node.value)', 'p.Compare(node.id, node.span, node.type, "<", node.low, node.value)'),
    (expressions, '"str" if isinstance(kind, t.String)', '"bool" if isinstance(kind, t.String)'),
    (expressions, "code.compare_code(\"is not\", kept, code.constant(...))", "code.compare_code(\"is\", kept, code.constant(...))"),
    (expressions, "if found.optional or _is_value(node):", "if False:"),
    (code, "ast.LtE: ast.Gt,", "ast.LtE: ast.GtE,"),
    (code, "return compare_code(\"is not\", value, NONE_NODE)", "return value"),
    (code, "[ast.LtE(), ast.LtE()]", "[ast.LtE(), ast.Lt()]"),
    (numbers, "10 ** (wanted - scale)", "10 ** (wanted - scale + 1)"),
    (numbers, "largest >= LIMIT", "largest > LIMIT * LIMIT"),
    (numbers, "_limit_between(unit, value, -limit, limit)", "_limit_between(unit, value, -limit, limit + 1)"),
    (numbers, 'code.compare_code("!=", right.result, code.constant(0))', 'code.compare_code("!=", right.result, code.constant(1))'),
    (numbers, "return fitting(unit, Code(quotient, needs), t.Duration())", "return Code(quotient, needs)"),
    (numbers, "return result if is_span else fitting(unit, result, node.type)", "return result"),
    (numbers, "return left * right\n", "return left + right\n"),
    (numbers, "return fitting(unit, value, node.type, max(sizes))", "return value"),
    (numbers, "ast.UnaryOp(ast.USub(), value.result)", "value.result"),
    (numbers, "code.either_value(code.both(found.needs), adds, absent)", "adds"),
    (numbers, "_constant_at_scale(unit, each, scale) for each in node.bounds", "_constant_at_scale(unit, each, None) for each in node.bounds"),
    (predicates, "return None if rest else int(scaled)", "return int(scaled)"),
    (predicates, 'sign = "not in" if node.negated else "in"', 'sign = "in"'),
    (predicates, "code.constant(_ADDRESS_BITS - bits)", "code.constant(_ADDRESS_BITS - bits + 1)"),
    (predicates, "return Code(code.opposite(found) if node.negated else found, value.needs)", "return Code(found, value.needs)"),
    (predicates, 'code.call("bool", operand.result)', "code.is_there(operand.result)"),
    (predicates, "code.compare_code(\"in\", right.result, left.result)", "code.compare_code(\"in\", left.result, right.result)"),
    (calls, "function in _MAY_BE_MISSING", "False"),
    (calls, "code.either(tests),)", "code.both(tests),)"),
    (calls, 'zone = code.attribute(code.name("e"), "time_zone")', 'zone = unit.module.global_name("zone", ZoneInfo("Asia/Tokyo"))'),
    (folds, 'sign = "<" if function == "min" else ">"', 'sign = ">"'),
    (folds, "10 ** (scale or 0)", "1"),
    (folds, 'state, code.constant(function == "all")', 'state, code.constant(function == "any")'),
    (folds, '"add", code.call("set")', '"append", ast.List([], ast.Load())'),
    (folds, "code.compare_code(\"is\", code.name(one), code.NONE_NODE)", "code.compare_code(\"is\", code.name(one), code.TRUE)"),
    (unit, 'Code(got, owner.needs, read not in _ALWAYS_THERE)', 'Code(got, (), read not in _ALWAYS_THERE)'),
    (unit, "return Code(code.name(local), (), optional=bool(value.needs) or value.optional)", "return Code(code.name(local))"),
    (sharing, "node = resolve_let(waiting.pop(), lets)", "node = resolve_let(waiting.pop(0), lets); lets = lets[:0]"),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program, and its `opposites_of`, with what the interpreter says of some payments."""

    program: p.Rule
    opposites: list[p.Rule]
    digests: Digests
    parts: list[p.Expression]
    seen: list[tuple[tuple[Any, ...], list[bool | None], list[Any]]]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found: list[Case] = []

    @given(rules(), st.integers(0, 2**32))
    @settings(
        max_examples=PROGRAMS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(program: p.Rule, seed: int) -> None:
        random = Random(seed)
        seen = [situation(random, program.histories) for _ in range(PAYMENTS)]
        found.append(case(program, seen))

    collect()
    for parameters in lines():
        (line,) = parameters.values
        found.append(case(program_of(line.expression), [situation_of(line)]))
    # Most faults show in a small program already.
    return sorted(found, key=lambda case: len(case.parts) * len(case.seen))


def case(program: p.Rule, situations: list[Situation]) -> Case:
    parts = scalars(program)
    seen = []
    for each in situations:
        scope = scope_of(program, each)
        outcomes = [evaluate(condition.when, scope) for condition in program.conditions]
        values = [carry(evaluate(part, scope), part.type) for part in parts]
        read = (each.facts, each.score, each.values, each.environment)
        seen.append((read, outcomes, values))
    return Case(program, opposites_of(program), Digests(program.lets), parts, seen)


def agrees(case: Case) -> bool:
    program = case.program
    decide = compile_rule(program, VOCABULARY, case.digests)
    opposites = [compile_rule(each, VOCABULARY, case.digests) for each in case.opposites]
    valued = compile_values(case.parts, program.lets, program.histories, VOCABULARY)
    for read, outcomes, values in case.seen:
        if decide(*read) != (outcomes.index(True) if True in outcomes else -1):
            return False
        if [each(*read) == 0 for each in opposites] != [each is False for each in outcomes]:
            return False
        if not all(map(same, valued(*read), values)):
            return False
    return True


def is_found(cases: list[Case]) -> bool:
    for place, each in enumerate(cases):
        try:
            found = not agrees(each)
        except Exception:  # a fault may break anything
            found = True
        if found:
            # What shows one fault often shows the next.
            cases.insert(0, cases.pop(place))
            return True
    return False


def functions(space: dict[str, Any], name: str) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that a module defines, by qualified name."""
    for value in list(space.values()):
        if isinstance(value, FunctionType) and value.__module__ == name:
            yield value.__qualname__, value
        elif isinstance(value, type) and value.__module__ == name:
            for method in vars(value).values():
                if isinstance(method, FunctionType) and method.__module__ == name:
                    yield method.__qualname__, method


def plant(module: ModuleType, piece: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(module)
    assert piece in source, f"{module.__name__} has no `{piece}`"
    space: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(piece, instead), module.__name__, "exec"), space)
    sound = dict(functions(vars(module), module.__name__))
    for name, function in functions(space, module.__name__):
        monkeypatch.setattr(sound[name], "__code__", function.__code__)
    for name, value in space.items():
        if isinstance(value, dict) and name.isupper() and not name.startswith("__"):
            monkeypatch.setattr(module, name, value)


def test_the_compiler_without_a_fault_agrees(cases: list[Case]) -> None:
    assert not is_found(cases)


@pytest.mark.parametrize(("module", "piece", "instead"), FAULTS)
def test_a_planted_fault_is_found(
    module: ModuleType,
    piece: str,
    instead: str,
    cases: list[Case],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(module, piece, instead, monkeypatch)
    assert is_found(cases)
