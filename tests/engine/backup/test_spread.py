"""Which payments are compared when a journal is moved: spread over all, and few at a time in memory."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.backup.into_database import spread


@given(st.integers(0, 2000), st.integers(1, 200))
def test_there_are_enough_in_equal_distances_and_never_twice_as_many(size: int, least: int) -> None:
    kept = spread(range(size), least)
    assert len(kept) >= min(size, least)
    assert len({after - before for before, after in pairwise(kept)}) <= 1
    assert len(kept) < 2 * least
