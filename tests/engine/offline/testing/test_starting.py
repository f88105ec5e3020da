"""`toll init` writes a folder that passes all that it is told to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.offline.testing.starting import OccupiedError, start_folder
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.program import Rule


def test_the_starting_rule_is_laid_out_and_decides_as_its_tests_say(tmp_path: Path) -> None:
    start_folder(tmp_path / "shop")
    path = tmp_path / "shop" / "checkout.rule"
    assert format_file(path.read_text()) == path.read_text()
    file = load_file(path, library_of([path]))
    assert isinstance(file.program, Rule)
    assert [run_test(file, test).failures for test in file.program.tests] == [()] * 5


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(OccupiedError, match=r"README\.md is there already"):
        start_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
