"""The plugin in a rule author's own repository, run as its author runs pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import syrupy
from click.testing import CliRunner

from tollkeeper.api.terminal.testing.run import run_tests
from tollkeeper.cli import main
from tollkeeper.tests.engine.offline.testing.conftest import Write, payment

RULE = """rule checkout
  use shared
  condition large when is_large and currency == "EUR" then deny
  test "large" given amount = 11, currency = "EUR" expect deny by large
  test "small" given amount = 1, currency = "EUR" expect default
"""

Run = Callable[..., tuple[int, str]]
PYTEST = (
    *("-c", "/dev/null", "--import-mode=importlib", "--color=no", "--disable-plugin-autoload"),
    *("-p", "syrupy", "-p", "tollkeeper.api.terminal.pytest_plugin"),
    # A run within a run would look through the memory of both for what was never awaited.
    *("-p", "no:cacheprovider", "-p", "no:unraisableexception"),
)


@pytest.fixture
def repository(write: Write, tmp_path: Path) -> Path:
    write("rules/checkout.rule", RULE)
    write("definitions/shared.rule", "definitions shared let is_large = amount > 10")
    write("tests/cases/day.jsonl", [{"payment": payment("p-1", amount=11)}])
    write("tests/checkout.rule", RULE.replace("rule checkout", "rule checkout_of_tests"))
    write("tests/test_own.py", "def test_own():\n    pass\n")
    write("rules/cases/day.jsonl", [{"payment": payment("p-1", amount=11)}])
    write(".venv/broken.rule", "definitions shared let")
    return tmp_path


@pytest.fixture(autouse=True)
def own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syrupy keeps its session in a global; a run within a run gives it back."""
    monkeypatch.setattr(syrupy, "_syrupy", syrupy._syrupy)


@pytest.fixture
def run(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    def run_pytest(*options: str) -> tuple[int, str]:
        monkeypatch.chdir(repository)
        capsys.readouterr()
        status = pytest.main([*PYTEST, "--rootdir", str(repository), *options])
        return int(status), capsys.readouterr().out

    return run_pytest


def test_tests_and_cases_are_collected_beside_python_tests(run: Run) -> None:
    _, said = run("--collect-only", "-q")
    assert said.splitlines()[:7] == [
        "rules/cases/day.jsonl::day",
        "rules/checkout.rule::large",
        "rules/checkout.rule::small",
        "tests/cases/day.jsonl::day",
        "tests/checkout.rule::large",
        "tests/checkout.rule::small",
        "tests/test_own.py::test_own",
    ]


def test_a_changed_outcome_fails_until_it_is_accepted(
    run: Run, repository: Path, write: Write
) -> None:
    assert run()[0] == 1
    assert run("--snapshot-update")[0] == 0
    accepted = (repository / "rules/cases/day.txt").read_text()
    assert "checkout: deny by large" in accepted
    assert run()[0] == 0
    write(
        "rules/checkout.rule",
        RULE.replace("then deny", "then challenge").replace("deny by", "challenge by"),
    )
    status, said = run()
    assert status == 1
    assert "-  checkout: deny by large, score" in said
    assert "+  checkout: challenge by large, score" in said
    assert run("--snapshot-update", "-k", "large")[0] == 0
    assert (repository / "rules/cases/day.txt").read_text() == accepted
    assert run("--snapshot-update")[0] == 0
    assert run()[0] == 0


def test_coverage_is_told_and_can_be_too_low(run: Run, repository: Path) -> None:
    run("--snapshot-update")
    options = ("--rule-coverage-json=c.json", "--rule-coverage-html=c.html")
    status, said = run("--rule-coverage-fail-under=90", *options)
    assert status == 1
    assert '`currency == "EUR"` never mattered' in said
    assert "less than 90 % is covered" in said
    assert (repository / "c.json").exists()
    assert (repository / "c.html").exists()
    assert run("--rule-coverage-fail-under=70")[0] == 0


def test_workers_see_together_what_one_run_sees(run: Run, repository: Path) -> None:
    run("--snapshot-update")
    run("--rule-coverage-json=one.json")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *PYTEST,
            "-p",
            "xdist",
            "-n2",
            "--rule-coverage-json=two.json",
        ],
        cwd=repository,
        capture_output=True,
        check=True,
    )
    assert (repository / "one.json").read_text() == (repository / "two.json").read_text()


def test_a_file_with_errors_is_told_by_its_diagnostics(run: Run, write: Write) -> None:
    write("rules/broken.rule", "rule broken condition c when amuont > 1 then deny")
    status, said = run("rules/broken.rule")
    assert status != 0
    assert "did you mean `amount`?" in said


def test_run_tests_tells_every_fault_and_changes_nothing(repository: Path, write: Write) -> None:
    write("rules/broken.rule", "rule broken condition c when amuont > 1 then deny")
    write(
        "rules/wrong.rule", 'rule wrong condition c when amount > 1 then deny test "it" expect deny'
    )
    before = {path for path in repository.rglob("*") if "__pycache__" not in path.parts}
    outcome = run_tests([repository / "rules", repository / "definitions"])
    assert (outcome.tests, outcome.cases) == (3, 1)
    assert [fault.title for fault in outcome.faults] == ["the file has errors", "day", "it"]
    assert {path for path in repository.rglob("*") if "__pycache__" not in path.parts} == before


def test_run_tests_accepts_what_cases_decide_now(repository: Path) -> None:
    paths = [repository / "rules", repository / "definitions"]
    assert len(run_tests(paths).faults) == 1
    assert run_tests(paths, accept=True).faults == ()
    assert run_tests(paths).faults == ()


def test_run_tests_leaves_python_tests_and_their_conftest_alone(
    repository: Path, write: Write
) -> None:
    write("tests/test_own.py", "def test_own():\n    raise AssertionError\n")
    write("conftest.py", "raise AssertionError\n")
    outcome = run_tests([repository], accept=True)
    assert (outcome.tests, outcome.cases, outcome.faults) == (4, 2, ())


def test_the_plugin_loads_nothing_where_no_rule_is_collected(repository: Path) -> None:
    """It is there in every run of pytest beside which Tollkeeper is installed."""
    own = repository / "own" / "test_own.py"
    own.parent.mkdir()
    own.write_text(
        "import sys\n\ndef test_own():\n"
        "    ours = [module for name, module in sys.modules.items() if name.startswith('tollkeeper')]\n"
        "    files = [module.__name__ for module in ours if not hasattr(module, '__path__')]\n"
        "    assert len(files) == 3, files\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, "--confcutdir=own", "own"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_the_command_says_of_what_must_hold_that_it_is_not_proved_and_what_helps(
    write: Write, tmp_path: Path
) -> None:
    write(
        "promises/slow.rule",
        """rule slow
        must "slow" when avg(transactions.duration) > 10000 never allow
        """,
    )
    ended = CliRunner().invoke(main, ["test", str(tmp_path / "promises/slow.rule")])
    assert ended.exit_code == 0
    assert "slow.rule:2: slow\n  not proved: `slow` reads a mean" in ended.output
    assert "no time proves it: say it in other words, or write a test" in ended.output
    assert "1 test, 0 cases, none failed, 1 not proved" in ended.output


def test_what_must_hold_is_a_test_that_a_payment_fails(run: Run, write: Write) -> None:
    write(
        "promises/checkout.rule",
        """rule checkout
        condition large when amount > 10 and currency == "EUR" then deny
        must "large euros stop" when amount > 10 and currency == "EUR" always deny
        must "users pass" when user.id is present never deny
        """,
    )
    code, said = run("promises")
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert "a payment breaks it:" in said
    assert "expect default" in said
