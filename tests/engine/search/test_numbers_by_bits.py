"""What sets by bits say of numbers is what the numbers say."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.search.blocks import set_of
from tollkeeper.engine.search.numbers_by_bits import (
    at_least,
    bits_in,
    by_number,
    from_highest,
    sum_of,
)

numbers = st.lists(st.integers(0, 300), max_size=30)


@given(numbers, st.sets(st.integers(0, 29)), st.integers(0, 600))
def test_sums_ranges_and_values_are_those_of_the_numbers(
    held: list[int], meant: set[int], least: int
) -> None:
    by_bit: dict[int, int] = {}
    for position, number in enumerate(held):
        for bit in bits_in(number):
            by_bit[bit] = by_bit.get(bit, 0) | 1 << position
    meant = {position for position in meant if position < len(held)}
    members = set_of(sorted(meant))
    assert sum_of(by_bit, members) == sum(held[position] for position in meant)
    above = set_of([position for position in meant if held[position] >= least])
    assert at_least(by_bit, least, members) == above
    expected: defaultdict[int, int] = defaultdict(int)
    for position in meant:
        expected[held[position]] |= 1 << position
    assert by_number(by_bit, members) == sorted(expected.items())
    assert [*from_highest(by_bit, members)] == sorted(expected.items(), reverse=True)
