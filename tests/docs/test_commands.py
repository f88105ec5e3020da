"""The commands in README.md and docs/ work, and those that are only mentioned exist.

A block of commands begins with ```sh and is run, page by page, in a copy of the shipped rules. One
that can't be run says why: ```sh not run: it serves until it is stopped. Blocks of `docs/api.md`
and of the tutorial, which show answers too, have tests of their own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from tollkeeper.cli import main
from tollkeeper.tests.service.forked_toll import forked_toll, searched

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:toll|make|pip|pytest|python)\s", re.MULTILINE)
MENTIONED = re.compile(r"`((?:toll|make|python -m) [^`]+)`")
ELSEWHERE = {"api.md", "integrate.md", "tutorial.md"}
PAYMENT = {
    "type": "purchase",
    "currency": "EUR",
    "amount": 9.5,
    "timestamp": "2026-03-02T09:00:00Z",
    "method": {"type": "card"},
    "merchant": {"id": "m"},
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Each fenced block: what stands behind the fence, and the text."""
    return BLOCK.findall(page.read_text())


def commands_to_run(page: Path) -> str:
    return "".join(text for kind, text in blocks(page) if kind == "sh")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a reader of any page has: the rules, an account, a month of payments, labels."""
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    lines = ({"payment": {"id": f"p-{number}", **PAYMENT}} for number in range(3))
    (tmp_path / "march.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "fraud.csv").write_text("id,label\np-1,fraud\n")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in ELSEWHERE and commands_to_run(page)],
    ids=lambda page: page.name,
)
def test_the_commands_of_a_page_work(page: Path, folder: Path) -> None:
    made = "" if page.name == "README.md" else "toll accounts create shop\n"
    with forked_toll() as toll:
        done = subprocess.run(
            ["bash", "-euc", f"set -o pipefail\n{made}{commands_to_run(page)}"],
            cwd=folder,
            env={**os.environ, "PATH": searched(toll)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_of_commands_is_run_or_says_why_not(page: Path) -> None:
    for kind, text in blocks(page):
        if COMMAND.search(text):
            known = kind in {"sh", "console"} or re.fullmatch(r"sh not run: .+", kind)
            assert known, f"{page.name}: begin the block with ```sh: {text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_that_is_mentioned_exists(page: Path) -> None:
    for command in MENTIONED.findall(page.read_text()):
        words = shlex.split(command)
        if words[0] == "toll":
            assert_known(words[1:], command)
        elif words[0] == "make":
            targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert words[1] in targets, command
        else:
            assert find_spec(words[2]), command


def assert_known(words: list[str], command: str) -> None:
    """The words name a command, and each option among them is one of its."""
    found: click.Command = main
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        several = [found.get_command(click.Context(found), each) for each in name.split("|")]
        assert all(several), command
        found = several[0]
    options = {name for each in found.get_params(click.Context(found)) for name in each.opts}
    assert {word for word in words if word.startswith("--")} <= options, command
