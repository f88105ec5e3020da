"""The pytest plugin: each `test` block of a rule file is a test, and so is each case.

`--snapshot-update` accepts what cases decide now; `--rule-coverage` tells what no test looked at.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.data import SnapshotCollections
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from tollkeeper.engine.files import SUFFIX, rule_files
from tollkeeper.engine.proof.blocks import run_test
from tollkeeper.engine.proof.cases import case_text, decide_case, is_case, load_case
from tollkeeper.engine.proof.coverage import FileCoverage, Mark, coverage, marks, percent
from tollkeeper.engine.proof.coverage_report import as_html, as_json, as_text
from tollkeeper.engine.proof.files import BrokenFileError, Library, RuleFile, library_of, load_file
from tollkeeper.engine.proof.outcomes import BlockError, Failure
from tollkeeper.engine.proof.streams import StreamError
from tollkeeper.grammar.program import Definitions, Test

LIBRARY = pytest.StashKey[Library]()
FILES = pytest.StashKey[dict[Path, RuleFile]]()
SEEN = pytest.StashKey[set[Mark]]()
_ACCEPT = "accept it with `toll test --accept` or `pytest --snapshot-update`"
_FROM_WORKER = "tollkeeper_seen"


class UnmetError(Exception):
    """A test whose expectations were not all met; its words say which and why."""

    def __init__(self, failures: Iterable[Failure]) -> None:
        super().__init__("\n\n".join(map(str, failures)))


class ChangedError(Exception):
    """A case that decides otherwise than was accepted; its words are the difference."""


_TOLD = (UnmetError, ChangedError, BlockError, StreamError, BrokenFileError)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tollkeeper", "rule files")
    group.addoption(
        "--rule-coverage",
        action="store_true",
        help="Tell which conditions were never met or refused, and which operands never mattered.",
    )
    group.addoption(
        "--rule-coverage-json", type=Path, metavar="FILE", help="Write the coverage as JSON."
    )
    group.addoption(
        "--rule-coverage-html", type=Path, metavar="FILE", help="Write the coverage as a page."
    )
    group.addoption(
        "--rule-coverage-fail-under",
        type=float,
        metavar="PERCENT",
        help="Fail when less than this was seen.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FILES] = {}
    config.stash[SEEN] = set()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == SUFFIX:
        return RuleCollector.from_parent(parent, path=file_path)
    if is_case(file_path):
        return CaseCollector.from_parent(parent, path=file_path)
    return None


class RuleCollector(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        try:
            file = load_file(self.path, _library(self.config))
        except BrokenFileError as error:
            raise self.CollectError(str(error)) from None
        self.config.stash[FILES][self.path] = file
        if not isinstance(file.program, Definitions):
            for test in file.program.tests:
                yield BlockItem.from_parent(self, name=test.title, file=file, test=test)


class BlockItem(pytest.Item):
    def __init__(self, *, file: RuleFile, test: Test, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = file
        self.block = test

    def runtest(self) -> None:
        outcome = run_test(self.file, self.block)
        if outcome.ran is not None:
            self.config.stash[SEEN].update(marks(outcome.ran))
        if outcome.failures:
            raise UnmetError(outcome.failures)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return _told(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.file.line(self.block.span) - 1, self.name


class CaseCollector(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield CaseItem.from_parent(self, name=self.path.stem)


class CaseItem(pytest.Item):
    @property
    def obj(self) -> type:
        """What syrupy names a snapshot by, which ours doesn't use."""
        return CaseItem

    def runtest(self) -> None:
        case = load_case(self.path, _library(self.config))
        decided = decide_case(case)
        for each in decided:
            for ran in filter(None, (each.scorecard, each.rule)):
                self.config.stash[SEEN].update(marks(ran))
        options = self.config.option
        accepted = SnapshotAssertion(
            session=self.config._syrupy,  # type: ignore[attr-defined]  # noqa: SLF001 - its fixture's way
            extension_class=CaseSnapshot,
            test_location=PyTestLocation(self),
            update_snapshots=options.update_snapshots,
            update_new_snapshots_only=options.update_new_snapshots_only,
        )
        if accepted != case_text(case, decided):
            raise ChangedError(_difference(accepted, self.path))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return _told(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class CaseSnapshot(SingleFileSnapshotExtension):
    """`cases/NAME.txt` beside `cases/NAME.jsonl`."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(test_location.filepath).parent)

    @classmethod
    def get_snapshot_name(
        cls,
        *,
        test_location: PyTestLocation,
        index: SnapshotIndex = 0,  # noqa: ARG003 - a case has one
    ) -> str:
        return Path(test_location.filepath).stem

    def discover_snapshots(
        self,
        *,
        test_location: PyTestLocation,  # noqa: ARG002 - as below
        ignore_extensions: list[str] | None = None,  # noqa: ARG002 - as below
    ) -> SnapshotCollections:
        """None: a text beside a case that was not run is not unused, and must not be removed."""
        return SnapshotCollections()


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    worker = getattr(config, "workeroutput", None)
    if worker is not None:
        seen = [(str(path), id_, seen) for path, id_, seen in config.stash[SEEN]]
        worker[_FROM_WORKER] = ([str(path) for path in config.stash[FILES]], seen)
        return
    covered = coverage_of(config)
    wanted = config.option.rule_coverage_fail_under
    if (
        wanted is not None
        and percent(covered) < wanted
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    for path, write in (
        (config.option.rule_coverage_json, as_json),
        (config.option.rule_coverage_html, as_html),
    ):
        if path is not None:
            path.write_text(write(covered), encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of pytest-xdist has collected and seen."""
    paths, seen = (getattr(node, "workeroutput", None) or {}).get(_FROM_WORKER, ((), ()))
    files = node.config.stash[FILES]
    for path in map(Path, paths):
        if path not in files:
            files[path] = load_file(path, _library(node.config))
    node.config.stash[SEEN].update(Mark(Path(path), id_, what) for path, id_, what in seen)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    wanted = config.option.rule_coverage_fail_under
    if config.option.rule_coverage or wanted is not None:
        covered = coverage_of(config)
        terminalreporter.write_sep("-", "rule coverage")
        terminalreporter.write_line(as_text(covered))
        if wanted is not None and percent(covered) < wanted:
            terminalreporter.write_line(f"less than {wanted:g} % were seen", red=True)


def coverage_of(config: pytest.Config) -> list[FileCoverage]:
    """What was seen of each collected file."""
    seen, root = config.stash[SEEN], config.rootpath
    return [
        coverage(os.path.relpath(path, root), file, seen)
        for path, file in sorted(config.stash[FILES].items())
    ]


def _library(config: pytest.Config) -> Library:
    """What the rule files under the paths of this run declare for one another."""
    if LIBRARY not in config.stash:
        here = config.invocation_params.dir
        paths = [here / argument.split("::")[0] for argument in config.args]
        folders = [path if path.is_dir() else path.parent for path in paths]
        # Environments and tools keep what is not the author's in hidden folders.
        found = [
            file
            for folder in folders
            for file in rule_files([folder])
            if not any(part.startswith(".") for part in file.relative_to(folder).parts)
        ]
        config.stash[LIBRARY] = library_of(found)
    return config.stash[LIBRARY]


def _told(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], style: Any) -> Any:
    if isinstance(excinfo.value, _TOLD):
        return str(excinfo.value)
    return pytest.Item.repr_failure(item, excinfo, style)


def _difference(accepted: SnapshotAssertion, path: Path) -> str:
    result = accepted.executions[accepted.num_executions - 1]
    if result.exception is not None:
        raise result.exception
    if result.recalled_data is None:
        return f"nothing is accepted yet of what {path.name} decides\n{_ACCEPT}"
    before, now = str(result.recalled_data), str(result.asserted_data)
    lines = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "accepted", "now", lineterm="", n=2
    )
    return "\n".join([*lines, _ACCEPT])
