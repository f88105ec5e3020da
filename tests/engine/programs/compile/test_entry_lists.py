"""An element is found in a long list of metadata as in a short one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.programs.compile.entry_sets import MOST_HELD, EntrySets
from tollkeeper.engine.programs.compile.functions import SCANNED, among, number_among

ENTRIES = st.sampled_from(
    [
        0,
        1,
        2.5,
        -0.0,
        0.1234567,
        5e-7,
        10**12 + 1,
        True,
        False,
        "",
        "1",
        "a",
        "\ud800",
        None,
        [],
        {},
    ]
)


@given(st.lists(ENTRIES, max_size=6), st.sampled_from(["", "1", "a", "\ud800", "b"]))
def test_texts(entries: list[Any], wanted: str) -> None:
    assert among(entries + [None] * SCANNED, wanted) is among(entries, wanted)


@given(st.lists(ENTRIES, max_size=6), st.integers(-3, 3), st.sampled_from([0, 1, 6, None]))
def test_numbers(entries: list[Any], wanted: int, scale: int | None) -> None:
    long = entries + [None] * SCANNED
    assert number_among(long, wanted, scale) is number_among(entries, wanted, scale)


@given(st.lists(ENTRIES, max_size=6), st.booleans())
def test_truths(entries: list[Any], wanted: bool) -> None:
    assert among(entries + [None] * SCANNED, wanted) is among(entries, wanted)


def test_a_list_is_itself_and_not_what_another_was() -> None:
    for number in range(100):
        held = [f"{number}-{each}" for each in range(SCANNED + 1)]
        assert among(held, f"{number}-0")
        assert not among(held, f"{number + 1}-0")


def test_the_lists_of_a_payment_are_each_made_a_set_once_and_those_of_earlier_ones_forgotten() -> (
    None
):
    made = []

    def make(entries: Any) -> frozenset[int]:
        made.append(len(entries))
        return frozenset(entries)

    sets = EntrySets(make)
    for _ in range(5):
        lists = [list(range(each, each + MOST_HELD // 200)) for each in range(100)]
        for _ in range(3):
            assert all(each in sets.of(held) for each, held in enumerate(lists))
    assert len(made) == 500
    sets.of(range(2 * MOST_HELD))
    sets.of(lists[-1])
    assert len(made) == 502
