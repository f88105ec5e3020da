"""`toll suggest`: a rule file on standard output or in a file, and words on what it rests on."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result
from syrupy.assertion import SnapshotAssertion

from tollkeeper.cli import main
from tollkeeper.tests.engine.offline.suggest.conftest import history as history


def suggest(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["suggest", *arguments], env={"COLUMNS": "100"})


def test_it_tells_what_each_condition_stops_and_writes_the_file(
    history: Path, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    target = tmp_path / "suggested.rule"
    found = suggest(
        "--history", str(history), "--precision", "0.85", "--without", "cards per device",
        "--output", str(target),
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert found.output.replace(str(target), "FILE") == snapshot
    assert target.read_text().startswith("rule suggested\n")


def test_as_json_it_has_the_text_and_every_figure(history: Path) -> None:
    found = suggest("--history", str(history), "--precision", "0.85", "--json")
    said = json.loads(found.stdout)
    assert said["text"].startswith("rule suggested\n")
    assert said["conditions"][0]["later"]["stopped"] > 0


def test_it_exits_with_3_when_there_is_nothing_to_suggest(history: Path) -> None:
    found = suggest("--history", str(history), "--precision", "0.999")
    assert found.exit_code == 3
    assert "nothing to suggest" in found.stderr


def test_what_is_unknown_is_named(history: Path) -> None:
    found = suggest("--history", str(history), "--without", "shoe size")
    assert found.exit_code == 2
    assert "nothing is called `shoe size`" in found.stderr
