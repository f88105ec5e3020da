"""A rule author's folder to try things in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.offline.testing.outcomes import UnmetExpectation
from tollkeeper.grammar.program import Definitions

Write = Callable[..., Path]
Check = Callable[..., UnmetExpectation]


def payment(id_: str, at: str = "12:00:00", **more: Any) -> dict[str, Any]:
    """A whole payment of 1 January 2026."""
    return {
        "id": id_,
        "type": "purchase",
        "currency": "EUR",
        "timestamp": f"2026-01-01T{at}Z",
        "method": {"type": "card"},
        "merchant": {"id": "shop"},
        **more,
    }


def card(last_four: str = "1111") -> dict[str, Any]:
    return {
        "type": "card",
        "card": {
            "network": "visa",
            "presence": "card_not_present",
            "bin": "41111111",
            "last_four": last_four,
        },
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file: a rule's text, or the lines of a stream."""

    def write_file(name: str, content: str | list[Mapping[str, Any]]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            content = "".join(json.dumps(line) + "\n" for line in content)
        path.write_text(content, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def check(write: Write) -> Check:
    """Runs the one test of a file's text."""

    def run(text: str) -> UnmetExpectation:
        path = write("example.rule", text)
        file = load_file(path, library_of([path.parent]))
        assert not isinstance(file.program, Definitions)
        (test,) = file.program.tests
        return run_test(file, test)

    return run
