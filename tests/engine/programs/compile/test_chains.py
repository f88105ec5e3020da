"""Lets that read lets: however long the chain and often the reading, as the interpreter says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.python import compile_rule, compile_values
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.grammar import program as p
from tollkeeper.tests.engine.programs.compile.payments import VOCABULARY, situation
from tollkeeper.tests.engine.programs.compile.test_agreement import scope_of
from tollkeeper.tests.engine.programs.compile.test_programs import checked

PAYMENTS = 2


def near(random: Random, names: list[str]) -> str:
    """A let above, mostly the last one."""
    return names[-1] if random.random() < 0.7 else random.choice(names)


def number(random: Random, numbers: list[str], booleans: list[str]) -> str:
    reads = [near(random, numbers) for _ in range(random.randint(0, 3))]
    if not reads:
        return random.choice(("amount", 'number(metadata["a"])', "length(user.id)", "score * 2"))
    form = random.random()
    if form < 0.1 and booleans:
        return f"count(transactions where {near(random, booleans)}) - {reads[0]}"
    if form < 0.2:
        return f"min({', '.join([*reads, 'amount'])})"
    if form < 0.3:
        return f"coalesce({', '.join([*reads, '7'])})"
    return random.choice((" - ", " + ", " - 2 * ")).join(reads)


def boolean(random: Random, numbers: list[str], booleans: list[str]) -> str:
    reads = [near(random, booleans) for _ in range(random.randint(0, 3))] if booleans else []
    if not reads:
        one, other = near(random, numbers), near(random, numbers)
        return f"{one} {random.choice(('<', '>=', '=='))} {other} + {random.randint(-2, 2)}"
    if random.random() < 0.3:
        return f"not ({' or '.join(reads)})"
    return random.choice((" and ", " or ")).join([*reads, f"{near(random, numbers)} > 1"])


def chain(seed: int, length: int, mixed: bool) -> str:
    """A rule of lets, each read by those below and by conditions, and by some not at all."""
    random = Random(seed)
    numbers, booleans = ["amount"], []
    lines = ["rule chain"]
    for index in range(length):
        makes_boolean = mixed and random.random() < 0.5
        value = (boolean if makes_boolean else number)(random, numbers, booleans)
        (booleans if makes_boolean else numbers).append(f"l{index}")
        lines.append(f"let l{index} = {value}")
    for index in range(random.randint(1, 4)):
        parts = [boolean(random, numbers, booleans) for _ in range(random.randint(1, 3))]
        lines.append(f"condition c{index} when ({') and ('.join(parts)}) then deny")
    return "\n".join(lines)


@given(st.integers(0, 2**32), st.integers(1, 250), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_chain_of_lets_decides_and_values_each_as_the_interpreter(
    seed: int, length: int, mixed: bool
) -> None:
    agrees(checked(chain(seed, length, mixed)), seed)


def agrees(program: p.Rule, seed: int) -> None:
    decide = compile_rule(program, VOCABULARY)
    parts = [condition.when for condition in program.conditions]
    values = compile_values(parts, program.lets, program.histories, VOCABULARY)
    random = Random(seed)
    for _ in range(PAYMENTS):
        seen = situation(random, program.histories)
        given = (seen.facts, seen.score, seen.values, seen.environment)
        scope = scope_of(program, seen)
        meant = tuple(carry(evaluate(part, scope), part.type) for part in parts)
        assert values(*given) == meant
        assert decide(*given) == (meant.index(True) if True in meant else -1)


@pytest.mark.parametrize("length", [68, 200])
@pytest.mark.parametrize(
    "link",
    [
        "{0} + {0}",
        "{0} + {0} - {1} - {1}",
        "coalesce(amount - {1}, {0})",
        "{0} - count(transactions where duration > {1})",
    ],
)
def test_a_chain_that_reads_each_let_twice_is_decided(link: str, length: int) -> None:
    lines = ["rule chain", "let l0 = amount", "let l1 = amount - 1"]
    lines += [f"let l{i} = {link.format(f'l{i - 1}', f'l{i - 2}')}" for i in range(2, length)]
    lines.append(f"condition early when l{length // 2} > 5 and amount > 3 then deny")
    lines.append(f"condition late when amount > 2 and l{length - 1} > 5 then deny")
    agrees(checked("\n".join(lines)), length)


@pytest.mark.parametrize("length", [70, 200])
@pytest.mark.parametrize("link", ["{0} and {0} or {1}", "not {0}", "({0} or {1}) and not {0}"])
def test_a_chain_of_booleans_is_decided(link: str, length: int) -> None:
    lines = ["rule chain", "let l0 = amount > 5", 'let l1 = currency == "BRL" or score > 0.5']
    lines += [f"let l{i} = {link.format(f'l{i - 1}', f'l{i - 2}')}" for i in range(2, length)]
    lines.append(f"condition late when amount > 2 and l{length - 1} then deny")
    lines.append(f"condition again when l{length - 1} or l{length // 2} then deny")
    agrees(checked("\n".join(lines)), length)
