"""The engine returns data: what a terminal or a page shows is made in `api/`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "engine"
OF_PRESENTATION = {"click", "html", "markdown_it", "pytest", "rich", "rich_click", "syrupy"}


def imported(path: Path) -> set[str]:
    """The top-level names of what a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name.split(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_the_engine_draws_nothing() -> None:
    drawing = {path for path in ENGINE.rglob("*.py") if imported(path) & OF_PRESENTATION}
    assert drawing == set()


@pytest.mark.parametrize("name", sorted(OF_PRESENTATION))
def test_an_import_within_a_function_is_noticed(name: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"def draw():\n    from {name} import anything\n")
    assert imported(module) == {name}
