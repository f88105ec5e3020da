"""What an aggregate costs is what docs/sizing.md says was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.programs.cost import series_cost
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames

PAGE = (Path(__file__).parents[3] / "docs" / "sizing.md").read_text()


@pytest.mark.parametrize(
    "call", ["count(payments", "sum(amount of payments", "distinct(user.id of payments"]
)
def test_the_bytes_of_a_series_are_those_of_the_page(call: str) -> None:
    text = f"rule a\n  condition c when {call} by merchant.id, currency over 1h) > 1 then deny\n"
    program = read_file(text.encode(), KnownNames()).program
    assert program is not None
    (history,) = program.histories  # type: ignore[union-attr]
    cost = series_cost(history)
    assert cost is not None
    assert cost.reach == 26 * HOUR
    assert f"| the first payment of a key, {cost.family} | {cost.bytes_a_key:g} |" in PAGE
    assert f"| each further payment of a key, {cost.family} | {cost.bytes_a_record:g} |" in PAGE
