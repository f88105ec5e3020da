"""The templates for a code host and for pre-commit: their commands run in a folder of `toll init`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest
import yaml

from tollkeeper.api.terminal.testing.run import run_tests
from tollkeeper.engine.offline.testing.starting import start_folder
from tollkeeper.tests.engine.offline.testing.conftest import payment
from tollkeeper.tests.service.forked_toll import forked_toll, searched

ROOT = Path(__file__).parents[4]
STEPS_ELSEWHERE = ("pip install", "apt-get update")
"""What prepares a machine is not run here."""
DEAR = """rule dear

  condition large
    when amount > 4 and currency == "EUR"
    then deny

  otherwise allow
"""
TELLS = """#!/bin/sh
printf '%s\\n' "$@" >> "$TOLD"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits: the rules that `toll init` gives, and one more that denies; all is accepted."""
    repository = tmp_path_factory.mktemp("repository")
    rules, history = repository / "rules", repository / "history" / "last_month.jsonl"
    start_folder(rules)
    history.parent.mkdir()
    lines = [
        {"payment": payment(f"p-{number}", amount=number), "decision": {"action": "allow"}}
        for number in range(1, 8)
    ]
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    git(repository, "init", "--quiet", "--initial-branch=main")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message=before")
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    (rules / "dear.rule").write_text(DEAR)
    assert run_tests([rules], accept=True).faults == ()
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message=after")
    return repository


@pytest.fixture
def repository(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "repository")


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A host's variables; its own commands write down how they were called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("gh", "curl"):
        (tools / name).write_text(TELLS)
        (tools / name).chmod(0o755)
    with forked_toll() as toll:
        path = os.pathsep.join([str(tools), searched(toll)])
        yield {"PATH": path, "HOME": str(tmp_path), "TOLD": str(tmp_path / "told")}


def git(repository: Path, *arguments: str) -> str:
    author = ("-c", "user.name=Author", "-c", "user.email=author@example.com")
    command = ["git", "-C", str(repository), *author, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run(commands: str, repository: Path, environment: dict[str, str], shell: str) -> str:
    done = subprocess.run(
        [shell, "-e", "-c", commands],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def own(commands: Iterator[str]) -> list[str]:
    return [each for each in commands if not each.startswith(STEPS_ELSEWHERE)]


def test_the_steps_of_the_github_workflow_run(
    repository: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    workflow = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text())
    summary = tmp_path / "summary.md"
    environment |= workflow["env"]
    environment |= {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(summary)}
    steps = [step["run"] for step in workflow["jobs"]["rules"]["steps"] if "run" in step]
    for commands in own(iter(steps)):
        written = commands.replace("${{ github.event.number }}", "7")
        run(written, repository, environment, "bash")
    assert summary.read_text().startswith(
        "**dear** over 7 payments of 2026-01-01: **3 (42.86%) would change**"
    )
    assert (repository / "backtest-dear.html").is_file()
    assert (tmp_path / "told").read_text().split() == [
        *("pr", "comment", "7", "--body-file", "summary.md")
    ]


def test_the_script_of_the_gitlab_job_runs(
    repository: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    job = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())["rules"]
    environment |= {
        **job["variables"],
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(repository, "rev-parse", "origin/main"),
        "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_IID": "7",
        "NOTES_TOKEN": "secret",
    }
    out = run("\n".join(own(iter(job["script"]))), repository, environment, "sh")
    assert "**3 (42.86%) would change**" in out
    report = repository / job["artifacts"]["reports"]["junit"]
    tests = [(each.get("file"), each.get("name")) for each in parse(report).iter("testcase")]
    assert ("rules/checkout.rule", "a second card") in tests
    assert ("rules/cases/first_day.jsonl", "first_day") in tests
    told = (tmp_path / "told").read_text().splitlines()
    assert told[-1] == "https://gitlab.example.com/api/v4/projects/1/merge_requests/7/notes"


def test_without_a_history_nothing_is_tried(
    repository: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    job = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())["rules"]
    environment |= {"RULES": "rules", "HISTORY": "none.jsonl", "NOTES_TOKEN": "secret"}
    for commands in job["script"]:
        if "summary.md" in commands:
            run(commands, repository, environment, "sh")
    assert not (tmp_path / "told").exists()


def test_the_steps_of_the_starting_workflow_run(
    repository: Path, environment: dict[str, str]
) -> None:
    rules = repository / "rules"
    workflow = yaml.safe_load((rules / ".github/workflows/rules.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["rules"]["steps"] if "run" in step]
    for commands in own(iter(steps)):
        run(commands, rules, environment, "bash")


def hooks() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return found


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook["id"])
def test_a_hook_runs_on_the_files_that_it_asks_for(
    hook: dict[str, Any], repository: Path, environment: dict[str, str]
) -> None:
    files = [
        name for name in git(repository, "ls-files").splitlines() if re.search(hook["files"], name)
    ]
    assert "rules/dear.rule" in files
    names = files if hook.get("pass_filenames", True) else []
    run(" ".join([hook["entry"], *hook.get("args", []), *names]), repository, environment, "sh")
    assert git(repository, "diff", "--name-only", "--", "*.rule") == ""
