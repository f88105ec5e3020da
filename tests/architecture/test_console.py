"""The console knows what anybody knows: it imports nothing of the engine, and says nothing of keys."""

from __future__ import annotations

import ast
from pathlib import Path

CONSOLE = Path(__file__).parents[2] / "api" / "console"
OWN = ("tollkeeper.api.console", "tollkeeper.api.html")


def imported(path: Path) -> set[str]:
    return {
        node.module or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }


def test_the_console_uses_the_public_interface_alone() -> None:
    foreign = {
        f"{path.name}: {module}"
        for path in CONSOLE.rglob("*.py")
        for module in imported(path)
        if module.startswith("tollkeeper") and not module.startswith(OWN)
    }
    assert foreign == set()
