"""Whatever was added to the filter is found, and little else."""

from __future__ import annotations

from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tollkeeper.engine.velocity import seen_filter
from tollkeeper.tests.builds import both_builds

BUILDS = both_builds(seen_filter.__name__, "tollkeeper.engine.velocity._seen_filter")
HASH = 16
LAYERS = 4
"""How many layers the groups of a test fill: 65,536 groups the first, each twice as many."""

hashes = st.lists(st.binary(min_size=HASH, max_size=HASH), max_size=20)


@given(added=st.lists(st.tuples(st.integers(1, 2**40), hashes)))
@pytest.mark.parametrize("build", BUILDS)
def test_what_was_added_is_always_found(build: Any, added: list[tuple[int, list[bytes]]]) -> None:
    found = build.SeenFilter()
    for series, groups in added:
        found.add(series, b"".join(groups))
    assert all(found.may_have(series, each) for series, groups in added for each in groups)


def test_what_was_never_added_is_hardly_ever_found_however_much_was() -> None:
    found, random = seen_filter.SeenFilter(), Random(1)
    for layer in range(LAYERS):
        added = random.randbytes(HASH * (1 << (16 + layer)))
        found.add(7, added)
        own = [added[at : at + HASH] for at in range(0, len(added), 64 * HASH)]
        others = [random.randbytes(HASH) for _ in range(2000)]
        assert all(found.may_have(7, each) for each in own)
        assert sum(found.may_have(7, each) for each in others) < 60
        assert sum(found.may_have(8, each) for each in own) <= 0.03 * len(own)
        assert found.size <= 4 * HASH * (1 << (16 + layer))


def test_a_group_added_again_takes_no_room() -> None:
    found, random = seen_filter.SeenFilter(), Random(1)
    added = random.randbytes(HASH * 60_000)
    before = found.size
    for _ in range(3):
        found.add(7, added)
    assert found.size == before


@pytest.mark.parametrize("seen", [b"", b"short", bytes(HASH + 1)])
def test_a_hash_of_another_size_is_refused(seen: bytes) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        seen_filter.SeenFilter().may_have(1, seen)
