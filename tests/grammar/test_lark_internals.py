"""What `grammar/parse_table.py` reads of Lark beyond its documented interface is there."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from lark import Lark
from lark.parsers import lalr_analysis

READ = {
    "lark": ("terminals", "ignore_tokens", "parse_interactive"),
    "terminal": ("name", "pattern", "priority"),
    "pattern": ("type", "value", "max_width", "to_regexp"),
    "table": ("start_state", "end_state", "states", "callbacks"),
}


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    lark = Lark('start: "a" WORD\nWORD: /b+/\n%ignore " "', parser="lalr", lexer="basic")
    terminal = lark.terminals[0]
    table = lark.parse_interactive("").parser_state.parse_conf
    return {"lark": lark, "terminal": terminal, "pattern": terminal.pattern, "table": table}


@pytest.mark.parametrize(("part", "name"), [(part, each) for part in READ for each in READ[part]])
def test_lark_still_has_what_the_table_is_made_of(
    part: str, name: str, parts: dict[str, Any]
) -> None:
    assert hasattr(parts[part], name), advice(f"`{name}` of a {part}")


def test_lark_still_has_the_class_of_its_tables_actions() -> None:
    assert hasattr(lalr_analysis, "Shift"), advice("`lalr_analysis.Shift`")


def test_each_state_of_the_table_shifts_a_token_or_reduces_a_rule(parts: dict[str, Any]) -> None:
    for row in parts["table"].states.values():
        for action, argument in row.values():
            if action is not lalr_analysis.Shift:
                for name in ("origin", "expansion", "alias", "options"):
                    assert hasattr(argument, name), advice(f"`{name}` of a reduction's rule")


def advice(what: str) -> str:
    return (
        f"Lark {version('lark')} no longer has {what}, which grammar/parse_table.py reads: "
        "follow the change there, or lower the pin of lark in pyproject.toml"
    )
