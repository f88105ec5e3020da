"""The starter rules: seen to the last branch by their own tests, and told by a case each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.api.terminal.testing.run import run_tests
from tollkeeper.engine.offline.testing.cases import case_text, decide_case, load_case
from tollkeeper.engine.offline.testing.files import library_of
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.grammar.formatter import format_file

PACK = ("app_checkout", "recurring", "verify", "web_checkout")
FILES = [SHIPPED / f"{name}.rule" for name in PACK]
CASES = [SHIPPED / "cases" / f"{name}.jsonl" for name in PACK]


def test_the_pack_is_covered_to_the_last_branch_by_its_own_tests() -> None:
    ran = run_tests(FILES)
    assert ran.faults == ()
    assert {each.file.path.stem: each.missed for each in ran.coverage} == dict.fromkeys(PACK, ())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_decides_as_it_was_accepted(path: Path) -> None:
    case = load_case(path, library_of([SHIPPED]))
    assert case_text(case, decide_case(case)) == path.with_suffix(".txt").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_pack_is_in_the_one_layout(path: Path) -> None:
    assert format_file(path.read_text()) == path.read_text()
