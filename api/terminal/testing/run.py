"""`toll test`: run the tests and cases under some paths, by pytest without its output."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from tollkeeper.api.terminal.testing.collecting import CaseItem, coverage_of
from tollkeeper.engine.offline.testing.coverage import FileCoverage


@dataclass(frozen=True, slots=True)
class Fault:
    """A test that failed, or a file that can't be tested; `text` gives the reason on several lines."""

    place: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test or case; `line` counts from 1, and is None for a case. `text` says why it
    failed or was skipped.
    """

    file: str
    line: int | None
    title: str
    outcome: Literal["passed", "failed", "skipped"]
    text: str

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestRun:
    """The number of tests and cases, each result, the failures, and the coverage."""

    tests: int
    cases: int
    results: tuple[TestResult, ...]
    faults: tuple[Fault, ...]
    coverage: tuple[FileCoverage, ...]

    __test__ = False


def run_tests(
    paths: Sequence[Path],
    *,
    accept: bool = False,
    only: Collection[str] = (),
    junit: Path | None = None,
) -> TestRun:
    """Run every `test` block and case under the paths; with `only`, just those with these titles.

    `accept` accepts the current decisions of cases, and the results are written to `junit` as JUnit's
    XML; nothing else is written.
    """
    watcher = _Watcher(only)
    arguments = [
        *("-c", os.devnull, "--rootdir", str(Path.cwd())),
        # Only rules and cases: plugins, conftest files and Python tests of the author are ignored.
        *("--disable-plugin-autoload", "--noconftest", "-o", "python_files="),
        "--continue-on-collection-errors",
        *("-p", "syrupy", "-p", "tollkeeper.api.terminal.testing.plugin"),
        *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:logging"),
        # It ends with two whole collections of garbage.
        *("-p", "no:unraisableexception"),
        *(("--snapshot-update",) if accept else ()),
        # The older of pytest's two forms: it names each test's file.
        *(("--junit-xml", str(junit), "-o", "junit_family=xunit1") if junit else ()),
        *("-o", "junit_suite_name=toll test"),
        "--",
        *map(str, paths),
    ]
    status = pytest.main(arguments, plugins=[watcher])
    if status not in (
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.INTERRUPTED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    ):
        raise RuntimeError(f"the tests could not be run: pytest ended with {status}")
    return TestRun(
        watcher.tests,
        watcher.cases,
        tuple(watcher.results),
        tuple(watcher.faults),
        tuple(watcher.coverage),
    )


def _skipped(report: pytest.TestReport) -> str:
    """Why a test was skipped, if it was."""
    match report.longrepr:
        case (_, _, str(reason)) if report.skipped:
            return reason.removeprefix("Skipped: ")
        case _:
            return ""


class _Watcher:
    """Collects pytest's reports while it runs."""

    def __init__(self, only: Collection[str]) -> None:
        self.only = only
        self.tests = 0
        self.cases = 0
        self.results: list[TestResult] = []
        self.faults: list[Fault] = []
        self.coverage: list[FileCoverage] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.only:
            items[:] = [each for each in items if each.name in self.only]

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if isinstance(item, CaseItem):
            self.cases += 1
        else:
            self.tests += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.faults.append(Fault(report.nodeid, "the file has errors", report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            path, line, title = report.location
            number = None if line is None else line + 1
            text = report.longreprtext if report.failed else _skipped(report)
            self.results.append(TestResult(path, number, title, report.outcome, text))
        if report.failed:
            path, line, title = report.location
            place = path if line is None else f"{path}:{line + 1}"
            self.faults.append(Fault(place, title, report.longreprtext))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.coverage = coverage_of(session.config)
