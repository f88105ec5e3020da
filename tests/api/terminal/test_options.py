"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize(
    "command",
    [
        ["test", ".", "--coverage-json"],
        ["test", ".", "--coverage-html"],
        ["prove", ".", "--as-test"],
        ["backtest", "a.rule", "--html"],
        ["suggest", "--output"],
        ["fit", "--output"],
    ],
)
def test_a_file_without_a_folder_is_refused_before_the_work(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.rule").write_text("rule a\n  condition c when amount > 1 then deny\n")
    asked = CliRunner().invoke(main, [*command, "missing/page"])
    assert asked.exit_code == 2
    assert "there is no folder `missing`" in asked.stderr


def test_what_the_system_forbids_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    asked = CliRunner().invoke(main, ["init", f"{tmp_path}/file/rules"])
    assert asked.exit_code == 1
    assert f"`{tmp_path}/file/rules`: not a directory" in asked.stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("chek", "there is no command `chek`; did you mean `check`?"),
        ("wxyz", "there is no command `wxyz`"),
    ],
)
def test_a_command_that_there_is_none_of_is_told_with_the_likely_one(typed: str, told: str) -> None:
    asked = CliRunner().invoke(main, [typed])
    assert asked.exit_code == 2
    assert told in asked.stderr
