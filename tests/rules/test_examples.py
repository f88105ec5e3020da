"""The rules that ship decide as their own tests say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.offline.rule_files import check_files, rule_files
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.grammar.program import Definitions

FILES = rule_files([SHIPPED])
EXAMPLES = rule_files([SHIPPED / "examples"])
LIBRARY = library_of([SHIPPED])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_file_decides_as_its_tests_say(path: Path) -> None:
    file = load_file(path, LIBRARY)
    if not isinstance(file.program, Definitions):
        for test in file.program.tests:
            assert run_test(file, test).failures == ()


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda folder: folder.name
)
def test_a_shipped_folder_checks_by_itself(folder: Path) -> None:
    assert [found for _, several in check_files([folder]) for found in several] == []


def test_there_are_at_least_25_examples() -> None:
    assert len(EXAMPLES) >= 25
