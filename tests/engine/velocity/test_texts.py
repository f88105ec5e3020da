"""Both builds number texts alike."""

from __future__ import annotations

from array import array
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tollkeeper.engine.velocity import texts
from tollkeeper.tests.builds import both_builds

BUILDS = both_builds(texts.__name__, "tollkeeper.engine.velocity._texts")
some = st.sampled_from(["", "a", "b", "é", "\U0001f600", "c" * 40])
others = st.none() | st.integers(0, 1) | st.booleans() | st.just(b"a")


@given(columns=st.lists(st.lists(st.tuples(some, some), max_size=6), max_size=4))
@pytest.mark.parametrize("build", BUILDS)
def test_a_text_always_has_the_number_of_those_that_came_before_it(
    build: Any, columns: list[list[tuple[str, str]]]
) -> None:
    numbers: dict[str, int] = {}
    known: list[str] = []
    for column in columns:
        for part in (0, 1):
            packed = build.number_texts(numbers, known, column, part)
            assert build.texts_of(packed, known) == [value[part] for value in column]
    assert list(numbers.items()) == [(text, number) for number, text in enumerate(known)]
    assert set(known) == {text for column in columns for value in column for text in value}


@pytest.mark.parametrize("build", BUILDS)
def test_a_number_without_a_text_is_an_error(build: Any) -> None:
    packed = array("I", [*range(40), 2**32 - 1]).tobytes()
    with pytest.raises(IndexError):
        build.texts_of(packed, ["a"] * 40)
    assert build.texts_of(b"", []) == []


@given(before=st.lists(some, max_size=3), other=others, after=st.lists(some, max_size=3))
@pytest.mark.parametrize("build", BUILDS)
def test_nothing_is_numbered_where_another_value_is_among_texts(
    build: Any, before: list[str], other: object, after: list[str]
) -> None:
    numbers: dict[str, int] = {}
    added: list[str] = []
    assert build.number_texts(numbers, added, [*before, other, *after], build.NO_PART) is None
    assert (numbers, added) == ({}, [])
