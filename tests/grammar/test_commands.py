"""`toll check` and `toll fmt`, on files as they lie on disk."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main
from tollkeeper.engine.offline import rule_files as files

LOOSE = 'rule shop "Käse"\n  condition c when amount>5 and currency == "EUR" then deny\n'
LAID_OUT = """rule shop "Käse"
  condition c
    when amount > 5 and currency == "EUR"
    then deny
"""
BROKEN = "rule shop\n  condition c when then deny\n"
TOLL = Path(sys.executable).with_name("toll")


def run(*arguments: str | Path, payment: str = "") -> tuple[int, str]:
    ended = CliRunner().invoke(main, [str(each) for each in arguments], input=payment)
    return ended.exit_code, ended.output


def test_a_file_is_laid_out_in_its_place_as_utf_8_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "shop.rule"
    file.write_text(LOOSE, encoding="utf-8")
    file.chmod(0o640)
    link = tmp_path / "link.rule"
    link.symlink_to(file)
    assert run("fmt", link)[0] == 0
    assert file.read_bytes() == LAID_OUT.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_a_warning_fails_a_strict_check_alone(tmp_path: Path) -> None:
    file = tmp_path / "shop.rule"
    file.write_text("rule shop\n  condition c when amount > 5 then deny\n", encoding="utf-8")
    code, said = run("check", file)
    assert "1 warning" in said
    assert code == 0
    assert run("check", file, "--strict")[0] == 1
    file.write_text(LAID_OUT, encoding="utf-8")
    assert run("check", file, "--strict")[0] == 0


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (LOOSE.encode("latin-1"), "not-utf8"),
        (BROKEN.encode(), "missing-value"),
        (b"#" * (256 * 1024 + 1), "file-too-large"),
    ],
)
def test_a_file_that_cant_be_read_is_left_as_it_is_and_says_why(
    tmp_path: Path, content: bytes, code: str
) -> None:
    file = tmp_path / "shop.rule"
    file.write_bytes(content)
    ended, output = run("fmt", file)
    assert (ended, f"error[{code}]" in output) == (1, True)
    assert file.read_bytes() == content
    assert run("check", file) == (1, output_of_check(output))


def test_two_files_are_compared_by_what_they_mean(tmp_path: Path) -> None:
    old, new = tmp_path / "old.rule", tmp_path / "new.rule"
    old.write_text(LOOSE, encoding="utf-8")
    new.write_text(LAID_OUT, encoding="utf-8")
    assert run("diff", old, new) == (0, f"{old} and {new} say the same\n")
    new.write_text(LAID_OUT.replace("> 5", "> 6"), encoding="utf-8")
    ended, output = run("diff", old, new)
    assert (ended, "condition `c`" in output) == (0, True)
    assert run("diff", old, tmp_path / "none.rule")[0] == 2


def test_brackets_in_a_message_are_shown_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "shop.rule"
    file.write_text("rule shop\n  condition c when amonut > 5 then deny\n")
    payment = {"id": "p", "type": "purchase", "currency": "EUR", "method": {"type": "card"}}
    sent = json.dumps({"payment": {**payment, "merchant": {"id": "m"}}})
    ended, output = run("eval", file, payment=sent)
    assert (ended, "error[unknown-name]" in output) == (1, True)


def output_of_check(output: str) -> str:
    return f"{output}1 file, 1 error, 0 warnings\n"


def test_a_file_that_can_not_be_written_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shop.rule"
    file.write_text(LOOSE, encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("fmt", file)[0] != 0
    assert file.read_text(encoding="utf-8") == LOOSE
    assert list(tmp_path.iterdir()) == [file]


def test_watching_checks_again_when_a_file_changes_until_it_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "shop.rule"
    file.write_text(LOOSE, encoding="utf-8")
    watching = subprocess.Popen(
        [TOLL, "check", "--watch", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Whatever runs the tests in the background has told its children to ignore Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert watching.stdout is not None
        assert b"0 errors" in watching.stdout.readline()
        file.write_text(BROKEN)
        assert b"error[missing-value]" in watching.stdout.readline()
        assert any(b"1 error" in line for line in watching.stdout)
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate()
    assert watching.returncode == 0


def test_watching_is_for_people(tmp_path: Path) -> None:
    assert run("check", "--watch", "--json", tmp_path)[0] == 2


def test_many_files_are_checked_side_by_side_as_they_are_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limits.rule").write_text("definitions limits\n  let high = amount > 500\n")
    for number in range(2 * files.FILES_A_PROCESS):
        wrong = " and amont > 1" if number % 3 == 0 else ""
        (tmp_path / f"r{number}.rule").write_text(
            f"rule r{number}\n  use limits\n  condition c when high{wrong} then deny\n"
        )
    side_by_side = files.check_files([tmp_path])
    monkeypatch.setattr(files, "FILES_A_PROCESS", len(side_by_side))
    assert side_by_side == files.check_files([tmp_path])
    assert len({diagnostic.code for _, found in side_by_side for diagnostic in found}) == 2


def test_what_only_has_the_name_of_a_rule_file_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "shop.rule").write_text(LAID_OUT, encoding="utf-8")
    (tmp_path / "folder.rule").mkdir()
    (tmp_path / "loop.rule").symlink_to("loop.rule")
    os.mkfifo(tmp_path / "pipe.rule")
    for arguments in (("check", tmp_path / "shop.rule"), ("check", tmp_path), ("fmt", tmp_path)):
        assert run(*arguments)[0] == 0, arguments


@pytest.mark.parametrize("command", ["check", "fmt", "prove", "test"])
def test_a_folder_without_rule_files_is_an_error(tmp_path: Path, command: str) -> None:
    (tmp_path / "full" / "deep").mkdir(parents=True)
    (tmp_path / "full" / "deep" / "shop.rule").write_text(LAID_OUT, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "payments.jsonl").write_text("{}\n")
    (tmp_path / "empty" / "folder.rule").mkdir()
    assert run(command, tmp_path / "full")[0] == 0
    code, told = run(command, tmp_path / "full", tmp_path / "empty")
    assert (code, "contains no rule file" in " ".join(told.split())) == (2, True)


def test_a_title_that_no_test_has_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "shop.rule"
    titled = LAID_OUT + 'test "much"\n  given amount = 9, currency = "EUR"\n  expect deny\n'
    file.write_text(titled, encoding="utf-8")
    assert run("test", file, "--only", "much")[0] == 0
    code, told = run("test", file, "--only", "much", "--only", "mcuh")
    assert (code, "no test or case is called `mcuh`" in " ".join(told.split())) == (2, True)


def test_a_file_without_tests_or_cases_is_named(tmp_path: Path) -> None:
    for name in ("shop.txt", "payments.jsonl"):
        (tmp_path / name).write_text("{}\n")
        code, told = run("test", tmp_path / name)
        assert code == 2
        assert "is neither a rule file nor a file of cases" in " ".join(told.split())
