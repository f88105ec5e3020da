"""Every condition of docs/coming-from.md can be written as it stands there."""

from __future__ import annotations

import re

import pytest

from tollkeeper.bench.rule_tokens import PAGE, pairs
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames

TEXT = PAGE.read_text(encoding="utf-8")
HEADER = re.findall(r"```rule\n(.*?)```", TEXT, re.DOTALL)[0]
SQL = re.findall(r"^\| .* \| (`.*`) \|$", TEXT[TEXT.index("## SQL") :], re.MULTILINE)
CONDITIONS = [each.ours for each in pairs()] + [
    c for row in SQL for c in re.findall("`([^`]+)`", row)
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_of_the_page_is_free_of_errors(condition: str) -> None:
    text = f"{HEADER}  condition c when {condition} then deny\n"
    found = read_file(text.encode(), KnownNames()).diagnostics
    assert not [each.message for each in found if each.severity == "error"]


def test_the_page_has_at_least_25_conditions_of_radar() -> None:
    assert len(pairs()) >= 25
