"""A decayed total is the sum of what each record weighs, in whatever order the records came."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.velocity.contract import Window
from tollkeeper.engine.velocity.decay import HALVES, STEPS_A_HALF, WEIGHTS, DecayGroups
from tollkeeper.engine.velocity.groups import Clock
from tollkeeper.grammar.types import Number
from tollkeeper.tests.examples import examples

SECOND = 1_000_000
HALF = 60 * SECOND
LATE = 3 * HALF
START = 1_789_000_000 * SECOND

elements = st.lists(
    st.tuples(st.integers(0, 50 * HALF), st.sampled_from("gh"), st.integers(-(10**6), 10**9)),
    max_size=30,
)


def groups(newest: int) -> DecayGroups:
    clock = Clock()
    clock.newest = newest
    return DecayGroups(clock, LATE + (HALVES + 1) * HALF, HALF)


def window(scale: int | None) -> Window:
    type_ = None if scale is None else Number(scale)
    return Window("decay", "decay", (HALVES + 1) * HALF, type_, half_life=HALF)


def weighed(found: list[tuple[int, str, int]], group: str, at: int, scale: int) -> int:
    """By the words of docs/language.md: in steps of a 64th of the half life."""
    now = at * STEPS_A_HALF // HALF
    total = Fraction(0)
    for time, of, value in found:
        step = time * STEPS_A_HALF // HALF
        if of == group and step <= now and step // STEPS_A_HALF >= now // STEPS_A_HALF - HALVES:
            halves, rest = divmod(now, STEPS_A_HALF)
            own, part = divmod(step, STEPS_A_HALF)
            weight = Fraction(WEIGHTS[part], WEIGHTS[rest]) / 2 ** (halves - own)
            total += value * weight
    scaled = total * 10**6 / 10**scale
    size = (2 * abs(scaled.numerator) + scaled.denominator) // (2 * scaled.denominator)
    return size if scaled >= 0 else -size


@settings(max_examples=examples(60), deadline=None)
@given(elements, elements, st.integers(0, 53 * HALF), st.integers(0, 2**32))
def test_a_total_is_what_its_records_weigh_in_any_order(
    kept: list[Any], gone: list[Any], at: int, seed: int
) -> None:
    random = Random(seed)
    newest = START + 50 * HALF
    held = groups(newest)
    changes = [(held.put, each) for each in [*kept, *gone]] + [(held.take, each) for each in gone]
    random.shuffle(changes)
    for change, (time, group, value) in changes:
        change(START + time, group, value)
    read = held.reader(window(2))
    moment = max(START + at, newest - LATE)
    there = [(START + time, group, value) for time, group, value in kept]
    copied = groups(newest)
    start = 0
    while start >= 0:
        start, columns = held.dump(start, 3)
        copied.load(columns)
    again = copied.reader(window(2))
    for group in "ghi":
        expected = weighed(there, group, moment, 2)
        assert read(group, moment) == again(group, moment) == expected


def test_what_is_over_is_given_back() -> None:
    held = groups(START)
    for number in range(100):
        held.put(START + number * HALF // 9, number % 7, True)
    held.clock.newest = START + 60 * HALF
    held.pass_buckets()
    while held.sweep():
        pass
    assert (held.keys, held.entries) == (0, 0)
    held.put(START, 1, True)
    assert held.keys == 0


@pytest.mark.parametrize("step", range(STEPS_A_HALF))
def test_weights_are_powers_of_two_to_sixty_places(step: int) -> None:
    # The 64th power of a weight lies around 2 ** step.
    low, high = Fraction(WEIGHTS[step], 2**60), Fraction(WEIGHTS[step] + 1, 2**60)
    assert low**STEPS_A_HALF <= 2**step <= high**STEPS_A_HALF


def test_a_total_beyond_what_a_decimal_holds_is_missing() -> None:
    held = groups(START)
    held.put(START, "g", 10**37)
    assert held.reader(window(0))("g", START) is None
