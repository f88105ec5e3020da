"""Options that several commands have."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main

OF = ["--account", "shop", "--data", "/nowhere"]


@pytest.mark.parametrize(
    "command", [["audit"], ["decisions"], ["payments"], ["lists", "show", "blocked"]]
)
@pytest.mark.parametrize("limit", ["-1", "0", "501"])
def test_a_page_has_one_item_at_least_and_500_at_most(command: list[str], limit: str) -> None:
    asked = CliRunner().invoke(main, [*command, "--limit", limit, *OF])
    assert asked.exit_code == 2
    assert "is not in the range 1<=x<=500" in asked.stderr


@pytest.mark.parametrize("command", ["audit", "decisions", "payments"])
@pytest.mark.parametrize("cursor", ["-1", "0", str(2**63), "9" * 30])
def test_a_cursor_that_no_page_gave_is_refused(command: str, cursor: str) -> None:
    asked = CliRunner().invoke(main, [command, "--cursor", cursor, *OF])
    assert asked.exit_code == 2
    assert "no page ends there" in asked.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "a\udcff"],
        ["erase", "--user", "a\udcff"],
        ["lists", "add", "blocked", "v", "--author", "a\udcff"],
    ],
)
def test_bytes_that_are_no_text_are_refused(command: list[str]) -> None:
    asked = CliRunner().invoke(main, [*command, *OF])
    assert asked.exit_code == 2
    assert "this is not UTF-8" in asked.stderr
