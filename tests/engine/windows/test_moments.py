"""Moments on disk and in memory are the same."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tollkeeper.engine.windows.moments import DiskMoments, MemoryMoments, Moments

groups = st.sampled_from(["a", ("a", 1), "('a', 1)", 2**127, True, 1.5])
times = st.integers(-2, 4)
changes = st.lists(st.tuples(st.booleans(), groups, times), max_size=40)


@pytest.mark.parametrize("kept", ["memory", "disk"])
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=changes, group=groups, at=times)
def test_first_and_latest_are_those_of_a_plain_list(
    kept: str, tmp_path: Path, changes: list[tuple[bool, object, int]], group: object, at: int
) -> None:
    moments: Moments = MemoryMoments() if kept == "memory" else DiskMoments(tmp_path)
    plain: list[tuple[object, int]] = []
    for added, seen, time in changes:
        if added:
            moments.add(seen, time)
            plain.append((seen, time))
        else:
            moments.remove(seen, time)
            if (seen, time) in plain:
                plain.remove((seen, time))
    own = sorted(time for seen, time in plain if seen == group)
    assert moments.first(group) == min(own, default=None)
    assert moments.latest(group, at) == max((t for t in own if t <= at), default=None)
    moments.discard()


def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    moments = DiskMoments(tmp_path)
    moments.add("a", 1)
    assert list(tmp_path.iterdir()) == []
    moments.discard()
