"""The rule files that the language server looks at: no more than it must, and again when they change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tollkeeper.api.terminal.lsp import folder as folders
from tollkeeper.api.terminal.lsp.folder import Folder

RULE = "rule a\n  condition c when score > 0.5 then deny\n"


def looking_at(*roots: Path) -> Folder:
    folder = Folder()
    folder.roots = [*roots]
    folder.scan()
    return folder


def test_hidden_folders_and_installed_packages_are_passed_over(tmp_path: Path) -> None:
    for name in ("rules", ".venv", "node_modules"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.rule").write_text(RULE)
    (tmp_path / "rules" / "loop").symlink_to(tmp_path)
    assert looking_at(tmp_path).paths() == [tmp_path / "rules" / "a.rule"]


def test_a_pipe_that_nobody_writes_to_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.rule")
    assert looking_at(tmp_path).paths() == []


def test_a_huge_tree_is_looked_at_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}" / "a.rule").write_text(RULE)
    monkeypatch.setattr(folders, "MAX_FOLDERS", 5)
    assert len(looking_at(tmp_path).paths()) == 4
    monkeypatch.setattr(folders, "MAX_FOLDERS", 100)
    monkeypatch.setattr(folders, "MAX_FILES", 3)
    assert len(looking_at(tmp_path).paths()) == 3


def test_a_file_is_read_again_only_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.rule"
    path.write_text(RULE)
    folder = looking_at(tmp_path)
    document, revision = folder.document(path), folder.revision
    folder.scan()
    assert folder.revision == revision
    assert folder.document(path) is document
    path.write_text(RULE.replace("deny", "challenge"))
    folder.scan()
    assert folder.document(path).text != document.text
    path.unlink()
    folder.scan()
    assert folder.text(path) is None


def test_a_change_of_definitions_reads_again_only_what_names_them(tmp_path: Path) -> None:
    cards, user, other = (tmp_path / f"{name}.rule" for name in ("cards", "user", "other"))
    cards.write_text("definitions cards\n  let busy = amount > 5\n")
    user.write_text("rule user\n  use cards\n  condition c when busy then deny\n")
    other.write_text(RULE.replace("rule a", "rule other"))
    folder = looking_at(tmp_path)
    before = {path: folder.document(path) for path in (user, other)}
    folder.write(cards, "definitions cards\n  let hurried = amount > 5\n")
    assert folder.document(user).diagnostics != before[user].diagnostics
    assert folder.document(other).parsed is before[other].parsed


def test_more_than_a_rule_file_can_hold_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.rule"
    path.write_text(RULE + "#" * 1_000_000)
    folder = looking_at(tmp_path)
    assert len(folder.text(path) or "") < 300_000
    assert [each.code for each in folder.document(path).diagnostics] == ["file-too-large"]


@pytest.mark.parametrize(
    ("name", "new", "said"),
    [
        ("busy", "slow", None),
        ("busy", "payments", "cards.rule: `payments` is a field's name"),
        ("busy", "score", "cards.rule: `score` is a field's name"),
        ("busy", "large", "user.rule: `large` is declared twice"),
        ("busy", "cold", "user.rule: `cold` is declared twice"),
        ("cold", "busy", "user.rule: `busy` is declared twice"),
    ],
)
def test_a_new_name_is_tried_in_each_file_that_sees_it(
    name: str, new: str, said: str | None
) -> None:
    texts = {
        "cards": "definitions cards\n  let busy = score > 0.5\n",
        "other": "definitions other\n  let cold = score < 0.5\n",
        "user": (
            "rule user\n  use cards\n  use other\n  let large = score > 0.9\n"
            "  condition c when large then deny\n"
        ),
    }
    folder = Folder()
    for stem, text in texts.items():
        folder.write(Path(f"/rules/{stem}.rule"), text)
    owner = "cards" if name == "busy" else "other"
    renamed = {Path(f"/rules/{owner}.rule"): texts[owner].replace(name, new)}
    assert folder.added_error(renamed, (name, owner)) == said
