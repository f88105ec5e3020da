"""A group's elements give what a recount gives, few or many, in whatever order they come."""

from __future__ import annotations

from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tollkeeper.engine.velocity import tree
from tollkeeper.engine.velocity.run import LongRun, Run
from tollkeeper.grammar.types import Boolean, Number, String, Type
from tollkeeper.tests.engine.velocity.worlds import (
    DAY,
    HOUR,
    MINUTE,
    START,
    recounted,
    same,
    window,
)
from tollkeeper.tests.examples import examples

FUNCTIONS: dict[str, tuple[tuple[str, ...], Type, list[Any]]] = {
    "amounts": (("sum", "avg", "min", "max", "distinct"), Number(2), [0, 1, -250, 10**37]),
    "ratios": (("sum", "avg", "min", "distinct"), Number(None), [0.1, -0.1, 1e308, -1e308, 5e-324]),
    "cards": (("distinct", "count"), String(), list("vwxyz")),
    "truths": (("any", "all"), Boolean(), [True, False, None]),
}
OVERS = (1, MINUTE, HOUR)
times = st.integers(0, 40) | st.sampled_from([MINUTE - 1, MINUTE, HOUR, HOUR + 7, DAY])


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_a_tree_always_gives_what_a_recount_gives(name: str, data: Any) -> None:
    functions, type_, values = FUNCTIONS[name]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tree, "LEAF", 3)
        patched.setattr(tree, "FAN", 3)
        steps = data.draw(
            st.lists(
                st.tuples(st.sampled_from("iiiirt"), times, st.sampled_from(values)), max_size=60
            )
        )
        run, plain = Run(valued=True), [(START, values[0])]
        run.insert(*plain[0])
        long = run.lengthen()
        horizon = START - 1
        for what, offset, value in steps:
            time = START + offset
            if what == "r" and plain:
                time, value = plain.pop(offset % len(plain))
                assert run.remove(time, value)
                assert not run.remove(time, "no such value")
            elif what == "t":
                horizon = max(horizon, START + offset // 2)
                plain = [each for each in plain if each[0] > horizon]
                run.trim(horizon)
            elif time > horizon:
                run.insert(time, value)
                plain.append((time, value))
            assert len(run) == len(plain)
            at = max(time, horizon + max(OVERS))
            for function in functions:
                for over in OVERS:
                    for end in (at, at + 1, START + DAY):
                        found = run.read(window(name, function, over), end)
                        inside = [v for t, v in plain if end - over < t <= end]
                        assert same(found, recounted(function, type_, inside)), (function, over)
        assert long is run.long


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_elements_in_any_order_give_what_a_recount_gives(name: str) -> None:
    functions, type_, values = FUNCTIONS[name]
    chance = Random(5)
    run, plain = Run(valued=True), []
    for number in range(400):
        if number == 200:
            run.lengthen()
        if plain and chance.random() < 0.2:
            gone = plain.pop(chance.randrange(len(plain)))
            assert run.remove(*gone)
        at = START + chance.choice([number, chance.randrange(DAY), DAY - chance.randrange(MINUTE)])
        value = chance.choice(values)
        run.insert(at, value)
        plain.append((at, value))
        for function in functions:
            over = chance.choice((MINUTE, HOUR, DAY))
            inside = [v for t, v in plain if at - over < t <= at]
            found = run.read(window(name, function, over), at)
            assert same(found, recounted(function, type_, inside))


def test_a_trimmed_run_keeps_what_is_later() -> None:
    for count in (100, 1000):
        run = Run(valued=True)
        for number in range(count):
            run.insert(START + number, number)
        read = window("amounts", "sum", DAY)
        assert run.read(read, START + count) == sum(range(count))
        assert run.trim(START + 39) == 40
        assert len(run) == count - 40
        assert run.read(read, START + count) == sum(range(40, count))
        assert not run.remove(START, 0)


def test_a_read_of_many_elements_looks_at_few_of_them() -> None:
    run = long_run(100_000)
    folded: list[int] = []

    def total(values: Any) -> Any:
        folded.append(len(values))
        return sum(values)

    fold = tree.PartialAggregate("total", total, total)
    run.tree.collect(START, START + 90_000, fold, [])
    folded.clear()
    chance = Random(2)
    for _ in range(500):
        at = START + chance.randrange(100_000)
        run.insert(at, 1)
        run.tree.collect(at - 50_000, at, fold, [])
    assert sum(folded) <= 500 * 12 * tree.LEAF


def long_run(count: int) -> LongRun:
    run = Run(valued=True)
    for number in range(count):
        run.insert(START + number, number)
    return run.lengthen()
