"""A command without the optional part that it needs says in one line what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.api.terminal.extras import extra
from tollkeeper.cli import main

RULE = "rule a condition b when score > 0.5 then deny"


@pytest.mark.parametrize(
    ("command", "missing", "folder", "name"),
    [
        ("test", "pytest", "api.terminal.testing", "test"),
        ("fit", "sklearn", "engine.offline.fit", "fit"),
    ],
)
def test_the_extra_that_is_missing_is_named(
    command: str,
    missing: str,
    folder: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "a.rule"
    file.write_text(RULE)
    for loaded in [each for each in sys.modules if each.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, missing, None)
    for ours in [each for each in sys.modules if each.startswith(f"tollkeeper.{folder}.")]:
        monkeypatch.delitem(sys.modules, ours)
    done = CliRunner().invoke(main, [command, str(file)])
    assert done.exit_code == 1
    assert done.stderr == f"this needs an extra: pip install 'tollkeeper[{name}]'\n"


def test_a_missing_module_of_ours_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError), extra("test"):
        import tollkeeper.nowhere  # noqa: F401
