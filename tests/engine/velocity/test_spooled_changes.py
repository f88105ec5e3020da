"""What was spooled is read again in order, and each group and time once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tollkeeper.engine.velocity.spooled_changes import HashedChange, SpooledChanges
from tollkeeper.tests.examples import examples

HASHES = st.one_of(
    st.sampled_from([bytes(16), b"\xff" * 16, b"\x00\x3f" + bytes(14), b"\x00\x40" + bytes(14)]),
    st.binary(min_size=16, max_size=16),
)
TIMES = st.sampled_from([-(2**63), -1, 0, 1, 1_790_000_000_000_000, 2**63 - 1])
CHANGES = st.lists(st.tuples(HASHES, TIMES, st.sampled_from([1, 1, 1, -1])), max_size=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spooled")


@settings(max_examples=examples(100), deadline=None)
@given(batches=st.lists(CHANGES, max_size=6))
def test_all_of_it_is_always_read_in_order_as_sums(
    folder: Path, batches: list[list[HashedChange]]
) -> None:
    sums = Counter[tuple[bytes, int]]()
    with closing(SpooledChanges(folder)) as spooled:
        for batch in batches:
            spooled.add(iter(batch))
            for seen, time, change in batch:
                sums[seen, time] += change
        found = [*read(spooled)]
    wanted = sorted((*key, change) for key, change in sums.items() if change)
    assert found == wanted


def test_a_range_is_read_by_itself_and_nothing_of_it_has_a_name(folder: Path) -> None:
    batch = [(number.to_bytes(2, "big") + bytes(14), 0, 1) for number in range(0, 2**16, 16)]
    with closing(SpooledChanges(folder)) as spooled:
        spooled.add(batch[::2])
        spooled.add(batch[1::2])
        assert {*map(len, spooled.ranges())} == {4}
        assert [*read(spooled)] == batch
        assert not [*folder.iterdir()]


def read(spooled: SpooledChanges) -> Iterator[HashedChange]:
    for changes in spooled.ranges():
        yield from changes
