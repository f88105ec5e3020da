"""The rules that ship decide as their own tests say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.offline.rule_files import check_files, rule_files
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.tests.rules.running import run_file

FILES = rule_files([SHIPPED])
EXAMPLES = rule_files([SHIPPED / "examples"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_file_decides_as_its_tests_say(path: Path) -> None:
    _, runs = run_file(path)
    assert [each.failures for each in runs if each.failures] == []


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda folder: folder.name
)
def test_a_shipped_folder_checks_by_itself(folder: Path) -> None:
    assert [found for _, several in check_files([folder]) for found in several] == []


def test_there_are_at_least_25_examples() -> None:
    assert len(EXAMPLES) >= 25
