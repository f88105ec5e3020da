"""The interpreter is the meaning: the compiled function agrees with it, whatever the rule."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.programs.compile import explain
from tollkeeper.engine.programs.compile.explain import Inputs
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate
from tollkeeper.engine.programs.compile.python import compile_rule, compile_values
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.walk import children
from tollkeeper.tests.engine.programs.compile.payments import VOCABULARY, Situation, situation
from tollkeeper.tests.engine.programs.compile.programs import rule, rules

PROGRAMS = int(os.environ.get("TOLLKEEPER_PROGRAMS", "60"))
PAYMENTS = 40
THOROUGH = settings(
    max_examples=PROGRAMS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


def scope_of(program: p.Rule, seen: Situation) -> EvaluationScope:
    inputs = Inputs(seen.facts, seen.values, seen.environment, seen.score)
    return explain.scope_of(program, inputs, VOCABULARY)


def parts_here(node: p.Expression) -> Iterator[p.Expression]:
    """The expression and all parts of it that have a value outside an aggregate."""
    yield node
    if not isinstance(node, (p.Fold, p.History)):
        for each in children(node):
            yield from parts_here(each)


def scalars(program: p.Rule) -> list[p.Expression]:
    roots = [*(let.value for let in program.lets), *(c.when for c in program.conditions)]
    found = [part for root in roots for part in parts_here(root)]
    unseen = (t.Record, t.Collection, t.Headers, t.Metadata)
    return [part for part in found if not isinstance(part.type, unseen)]


def opposites_of(program: p.Rule) -> list[p.Rule]:
    """For each condition, a rule that is met where the condition is definitely false."""
    return [
        rule(
            (replace(each, when=p.Not(each.id, each.span, each.when.type, each.when)),),
            program.lets,
            program.histories,
        )
        for each in program.conditions
    ]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@given(rules(), st.integers(0, 2**32))
@THOROUGH
def test_a_compiled_rule_decides_and_values_every_part_as_the_interpreter(
    program: p.Rule, seed: int
) -> None:
    decide = compile_rule(program, VOCABULARY)
    opposites = [compile_rule(each, VOCABULARY) for each in opposites_of(program)]
    parts = scalars(program)
    values = compile_values(parts, program.lets, program.histories, VOCABULARY)
    random = Random(seed)
    for _ in range(PAYMENTS):
        seen = situation(random, program.histories)
        given = (seen.facts, seen.score, seen.values, seen.environment)
        scope = scope_of(program, seen)
        outcomes = [evaluate(c.when, scope) for c in program.conditions]
        expected = outcomes.index(True) if True in outcomes else -1
        assert decide(*given) == expected
        for outcome, opposite in zip(outcomes, opposites, strict=True):
            assert (opposite(*given) == 0) is (outcome is False)
        for part, value in zip(parts, values(*given), strict=True):
            meant = carry(evaluate(part, scope), part.type)
            assert same(value, meant), (part, value, meant, seen)
