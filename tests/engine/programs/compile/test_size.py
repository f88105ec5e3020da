"""Generated functions grow with the rule and no faster, and no checked rule is too deep."""

from __future__ import annotations

import ast
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from random import Random

import pytest

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile import code
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.syntax import Span
from tollkeeper.tests.engine.programs.compile.payments import EMPTY, VOCABULARY, payment
from tollkeeper.tests.engine.programs.compile.programs import rule

BOOLEAN = t.Boolean()
SPAN = Span(0, 1)
DEEPEST = 62
Build = Callable[[int], p.Expression]
_ids = count(1000)


def amount() -> p.Expression:
    return p.Fact(next(_ids), SPAN, VOCABULARY.payment["amount"].type, ("amount",))


def number(value: int) -> p.Expression:
    return p.Constant(next(_ids), SPAN, t.Number(0, Decimal(value), Decimal(value)), value)


def leaf(value: int) -> p.Expression:
    return p.Compare(next(_ids), SPAN, BOOLEAN, "<", amount(), number(value))


def alternating(depth: int) -> p.Expression:
    node = leaf(0)
    for level in range(depth):
        if level % 3 == 0:
            node = p.Not(next(_ids), SPAN, BOOLEAN, node)
        else:
            kind = p.And if level % 3 == 1 else p.Or
            node = kind(next(_ids), SPAN, BOOLEAN, (leaf(level), node))
    return node


def presences(depth: int) -> p.Expression:
    node = leaf(0)
    for level in range(depth // 2):
        node = p.Or(next(_ids), SPAN, BOOLEAN, (leaf(level), node))
        node = p.Presence(next(_ids), SPAN, BOOLEAN, node, "missing")
    return node


def coalesced(depth: int) -> p.Expression:
    node = leaf(0)
    for level in range(depth // 2):
        node = p.And(next(_ids), SPAN, BOOLEAN, (node, leaf(level)))
        node = p.Call(next(_ids), SPAN, BOOLEAN, "coalesce", (node, leaf(level)))
    return node


def arithmetic(depth: int) -> p.Expression:
    node = amount()
    for level in range(depth):
        node = p.Arithmetic(next(_ids), SPAN, t.Number(2), "+-"[level % 2], node, number(level))
    return p.Compare(next(_ids), SPAN, BOOLEAN, "<", node, number(5))


def ends(depth: int) -> p.Expression:
    node = amount()
    for _ in range(depth - 1):
        node = p.Call(next(_ids), SPAN, t.Number(2), "max", (node, amount()))
    return p.Between(next(_ids), SPAN, BOOLEAN, node, amount(), node)


def size(node: p.Expression, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many nodes of `ast` the rule of this one condition becomes."""
    return size_of(rule((condition(node, 0),)), monkeypatch)


def size_of(program: p.Rule, monkeypatch: pytest.MonkeyPatch) -> int:
    sizes = []

    def counting(functions: list[ast.stmt], entry: str, names: dict[str, object]) -> object:
        sizes.append(sum(1 for _ in ast.walk(ast.Module(list(functions), []))))
        return define(functions, entry, names)

    define = code.define
    with monkeypatch.context() as patched:
        patched.setattr(code, "define", counting)
        compile_rule(program, VOCABULARY)
    return sizes[0]


def condition(node: p.Expression, index: int) -> p.Condition:
    return p.Condition(next(_ids), SPAN, f"c{index}", None, node, "deny")


@pytest.mark.parametrize("build", [alternating, presences, coalesced, arithmetic, ends])
def test_a_deep_expression_becomes_no_more_than_linear_python(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    half, whole = (size(build(depth), monkeypatch) for depth in (DEEPEST // 2, DEEPEST))
    assert whole < 2.2 * half


@pytest.mark.parametrize(
    ("number", "build"),
    [(500, alternating), (100, presences), (100, coalesced), (100, arithmetic), (100, ends)],
)
def test_many_conditions_of_the_deepest_nesting_compile_and_decide(
    number: int, build: Build
) -> None:
    program = rule(tuple(condition(build(DEEPEST), index) for index in range(number)))
    decide = compile_rule(program, VOCABULARY)
    assert decide(paid(), None, (), EMPTY) in range(-1, number)


def paid() -> object:
    return payment(Random(1))


def let(index: int, value: p.Expression) -> p.Let:
    return p.Let(f"l{index}", SPAN, value)


def read(index: int) -> p.Expression:
    return p.LetValue(next(_ids), SPAN, t.Number(2), index)


@pytest.mark.parametrize("uses", [1, 3])
def test_500_lets_that_each_read_the_one_before_stay_linear(
    uses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chained(length: int) -> p.Rule:
        lets = [let(0, amount())]
        for index in range(1, length):
            node: p.Expression = number(index)
            for _ in range(uses):
                node = p.Arithmetic(next(_ids), SPAN, t.Number(2), "-", read(index - 1), node)
            lets.append(let(index, node))
        last = p.Compare(next(_ids), SPAN, BOOLEAN, ">", read(length - 1), number(1))
        late = p.And(next(_ids), SPAN, BOOLEAN, (leaf(5), last))
        return rule((condition(late, 0), condition(last, 1)), tuple(lets))

    assert size_of(chained(500), monkeypatch) < 2.2 * size_of(chained(250), monkeypatch)
    decide = compile_rule(chained(500), VOCABULARY)
    assert decide(paid(), None, (), Environment()) in (-1, 0, 1)


def test_equal_expressions_have_one_digest_whatever_their_ids_and_lets() -> None:
    lets = (let(0, amount()),)
    assert Digests(lets).of(read(0)) == Digests(()).of(amount())
    assert Digests(()).of(leaf(1)) == Digests(()).of(leaf(1))
    assert Digests(()).of(leaf(1)) != Digests(()).of(leaf(2))


def test_a_digest_never_changes() -> None:
    assert Digests(()).of(leaf(1)) == "0bbc9f2b4155ce084d2729983ed0b156"
