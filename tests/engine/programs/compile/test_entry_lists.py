"""An element is found in a long list of metadata as in a short one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.programs.compile.functions import SCANNED, among, number_among
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.tests.engine.programs.compile.payments import EMPTY, VOCABULARY
from tollkeeper.tests.engine.programs.compile.test_programs import checked, paid

SKUS = ("skus",)

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
    long = entries + [None] * SCANNED
    assert among({}, SKUS, long, wanted) is among({}, SKUS, entries, wanted)


@given(st.lists(ENTRIES, max_size=6), st.integers(-3, 3), st.sampled_from([0, 1, 6, None]))
def test_numbers(entries: list[Any], wanted: int, scale: int | None) -> None:
    long = entries + [None] * SCANNED
    of_long, of_short = (number_among({}, SKUS, each, wanted, scale) for each in (long, entries))
    assert of_long is of_short


@given(st.lists(ENTRIES, max_size=6), st.booleans())
def test_truths(entries: list[Any], wanted: bool) -> None:
    long = entries + [None] * SCANNED
    assert among({}, SKUS, long, wanted) is among({}, SKUS, entries, wanted)


RULE = """
rule basket
  condition first when "0-0" in metadata["skus"] then deny
  condition second when "1-0" in metadata["skus"] then deny
  condition inner when "2-0" in metadata["cart"]["skus"] then deny
  condition numbers when 7 in metadata["skus"] then deny
"""


def test_each_payment_is_asked_for_its_own_lists() -> None:
    decide = compile_rule(checked(RULE), VOCABULARY)

    def met(metadata: dict[str, Any]) -> int:
        return decide(paid(f"metadata = {json.dumps(metadata)}"), None, (), EMPTY)

    def skus(number: int) -> list[str]:
        return [f"{number}-{each}" for each in range(SCANNED + 1)]

    numbers = list(range(SCANNED + 1))
    assert [met({"skus": skus(number)}) for number in range(3)] == [0, 1, -1]
    assert met({"skus": skus(2), "cart": {"skus": skus(2)}}) == 2
    assert met({"skus": numbers}) == 3
    assert met({"skus": skus(0)}) == 0
