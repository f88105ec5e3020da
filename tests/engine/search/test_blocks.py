"""Sets of payments as integers, and stretches of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.search.blocks import SIZE, set_of, sliceable, stretch


@given(st.sets(st.integers(0, SIZE - 1)), st.integers(0, SIZE - 1), st.integers(1, SIZE))
def test_a_stretch_has_always_what_the_set_has_there(bits: set[int], low: int, length: int) -> None:
    high = min(low + length, SIZE)
    members = set_of(bits)
    assert stretch(sliceable(members), low, high) == members >> low & (1 << high - low) - 1
