"""A docstring cites only documents that a reader of the repository has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = re.compile(r"\b(?:[\w-]+/)*[\w-]+\.md\b")


def docstrings() -> Iterator[tuple[Path, str]]:
    for top in ("grammar", "engine", "api", "tests", "bench"):
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text()
            if ".md" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                value = node.value if isinstance(node, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield path, value.value


def exists(document: str, path: Path) -> bool:
    places = (ROOT, ROOT / "docs", *path.parents)
    return any((place / document).exists() for place in places)


def test_a_cited_document_is_in_the_repository():
    missing = {
        f"{path.relative_to(ROOT)}: {document}"
        for path, text in docstrings()
        for document in DOCUMENT.findall(text)
        if not exists(document, path)
    }
    assert missing == set()
