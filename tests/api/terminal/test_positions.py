"""Places as the protocol counts them: right in any text, and found in work in proportion to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.terminal.lsp.positions import Places, units
from tollkeeper.grammar.parser import parse

MOST_CALLS_PER_PLACE = 30


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@given(st.text(st.sampled_from("a\r\né\u2028😀\U0010ffff"), max_size=60))
def test_each_place_is_counted_in_utf_16_and_found_again(text: str) -> None:
    where = Places.of(text)
    for offset in range(len(text) + 1):
        position = where.position(offset)
        before = text[:offset].rpartition("\n")[2]
        assert position.line == text[:offset].count("\n")
        assert position.character == units(before) == len(before.encode("utf-16-le")) // 2
        if text[offset - 1 : offset] != "\r":
            assert where.offset(position) == offset


@pytest.mark.parametrize("joined", [" or ", "\n or "])
def test_the_places_of_all_tokens_take_work_in_proportion_to_the_text(joined: str) -> None:
    text = f'rule r condition c when {joined.join(["amount > 5"] * 1000)} then deny "😀"'
    spans = [each.span for each in parse(text).pieces]
    found = []

    def place_all() -> None:
        found.extend(Places.of(text).range(span) for span in spans)

    assert calls_of(place_all) < MOST_CALLS_PER_PLACE * len(spans)
    starts = [(each.start.line, each.start.character) for each in found]
    assert all(one < other for one, other in pairwise(starts))
