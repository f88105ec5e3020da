"""What the editors' files take from the language is what the language says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib

import pytest

from tollkeeper.editors.generate import GRAMMAR, SNIPPETS, VSCODE, grammar, snippets
from tollkeeper.engine.offline.rule_files import check_files
from tollkeeper.grammar.parser import keywords

EDITORS = VSCODE.parent
PACKAGE = json.loads((VSCODE / "package.json").read_text())


def test_the_grammar_and_the_snippets_are_not_stale() -> None:
    assert GRAMMAR.read_text() == grammar(), "run `make docs`"
    assert SNIPPETS.read_text() == snippets(), "run `make docs`"


def test_each_word_of_the_language_is_coloured() -> None:
    patterns = [each["match"] for each in json.loads(grammar())["patterns"] if "match" in each]
    for word in keywords():
        assert any(re.fullmatch(pattern, word) for pattern in patterns), word


def test_each_file_that_the_extension_names_is_there() -> None:
    held = PACKAGE["contributes"]
    steps = held["walkthroughs"][0]["steps"]
    named = [
        *(each["configuration"] for each in held["languages"]),
        *(each["path"] for each in (*held["grammars"], *held["snippets"])),
        *(step["media"]["markdown"] for step in steps),
    ]
    assert [name for name in named if not (VSCODE / name).is_file()] == []


def test_the_locked_packages_name_no_host() -> None:
    locked = json.loads((VSCODE / "package-lock.json").read_text())["packages"]
    assert [name for name, each in locked.items() if "resolved" in each] == []
    assert all("integrity" in each for name, each in locked.items() if name)


def test_the_sample_for_forges_is_a_rule_without_a_finding() -> None:
    ((_, found),) = check_files([EDITORS / "linguist" / "sample.rule"])
    assert found == ()


def test_every_editor_starts_the_language_server_for_rule_files() -> None:
    helix = tomllib.loads((EDITORS / "helix" / "languages.toml").read_text())
    assert helix["language-server"]["toll"] == {"command": "toll", "args": ["lsp"]}
    assert helix["language"][0]["file-types"] == ["rule"]
    zed = tomllib.loads((EDITORS / "zed" / "languages" / "toll" / "config.toml").read_text())
    assert zed["path_suffixes"] == ["rule"]
    assert '"toll", "lsp"' in (EDITORS / "neovim" / "toll.lua").read_text()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(
    not (VSCODE / "node_modules").is_dir(), reason="`npm ci` was not run in editors/vscode"
)
def test_the_extensions_own_tests_pass() -> None:
    """The grammar as VS Code reads it, over every rule that ships."""
    ran = subprocess.run(["npm", "test"], cwd=VSCODE, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]
    assert "# fail 0" in ran.stdout
