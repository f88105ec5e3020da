"""`toll new`: what it writes is a rule that passes its own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.api.terminal.templates import start_rule, templates
from tollkeeper.cli import main
from tollkeeper.engine.offline.testing.publishable import try_file
from tollkeeper.engine.offline.testing.starting import OccupiedError
from tollkeeper.engine.registry.changes import Thresholds


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["new", *arguments])
    return done.exit_code, done.output


def test_without_a_template_all_are_listed_with_their_purpose() -> None:
    code, told = run()
    assert code == 0
    lines = [line.split(maxsplit=1) for line in told.splitlines()[1:]]
    assert [name for name, _ in lines] == [each.name for each in templates()]
    assert {"card_velocity", "bin_attack", "trusted_customers"} <= {name for name, _ in lines}


@pytest.mark.parametrize("name", ["bin_attack", "slow_attempts"])
def test_what_is_written_passes_its_own_tests_under_its_new_name(name: str, tmp_path: Path) -> None:
    code, told = run(name, "--name", "mine", "--folder", str(tmp_path))
    assert (code, told.splitlines()[0]) == (0, f"wrote {tmp_path / 'mine.rule'}")
    assert "\nrule mine " in (tmp_path / "mine.rule").read_text()
    assert try_file(tmp_path / "mine.rule", Thresholds()) == []


def test_nothing_is_written_over_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "payments").mkdir()
    (tmp_path / "payments" / "slow.json").write_text("mine")
    with pytest.raises(OccupiedError, match=r"slow\.json is there already"):
        start_rule("slow_attempts", tmp_path, "slow_attempts")
    assert [path.name for path in tmp_path.iterdir()] == ["payments"]


def test_a_misspelt_template_and_a_bad_name_are_told(tmp_path: Path) -> None:
    assert run("card_velocty", "--folder", str(tmp_path)) == (
        1,
        "there is no template `card_velocty`; did you mean `card_velocity`?\n",
    )
    code, told = run("card_velocity", "--name", "../mine", "--folder", str(tmp_path))
    assert code == 2
    assert "letters, digits" in told
    assert list(tmp_path.iterdir()) == []
