"""Rule files and cases as pytest collects and runs them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.data import SnapshotCollections
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from tollkeeper.api.terminal.testing.plugin import COLLECTED
from tollkeeper.engine.offline.rule_files import rule_files
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.cases import case_text, decide_case, load_case
from tollkeeper.engine.offline.testing.coverage import FileCoverage, Mark, Seen, coverage, marks
from tollkeeper.engine.offline.testing.files import (
    BrokenFileError,
    Library,
    RuleFile,
    library_of,
    load_file,
)
from tollkeeper.engine.offline.testing.outcomes import BlockError, Failure
from tollkeeper.engine.offline.testing.streams import StreamError
from tollkeeper.grammar.program import Definitions, Promise, Rule, Test

FromWorker: TypeAlias = tuple[list[str], list[tuple[str, int, Seen]]]
"""The paths of files, and which of their parts were covered."""
_ACCEPT = "accept it with `toll test --accept` or `pytest --snapshot-update`"


class UnmetError(Exception):
    """A test with unmet expectations; the message says which and why."""

    def __init__(self, failures: Iterable[Failure]) -> None:
        super().__init__("\n\n".join(map(str, failures)))


class BrokenPromiseError(Exception):
    """A payment violates a `must`; the message is that payment."""


class ChangedError(Exception):
    """A case's decision differs from the accepted one; the message is the difference."""


_REPORTED_ERRORS = (
    UnmetError,
    BrokenPromiseError,
    ChangedError,
    BlockError,
    StreamError,
    BrokenFileError,
)


@dataclass
class CollectedFiles:
    """The rule files of a run, what they declare for one another, and their coverage."""

    library: Library
    files: dict[Path, RuleFile] = field(default_factory=dict)
    seen: set[Mark] = field(default_factory=set)

    def load(self, path: Path) -> RuleFile:
        """Load a rule file. Raises `BrokenFileError`."""
        if path not in self.files:
            self.files[path] = load_file(path, self.library)
        return self.files[path]


def collection_of(config: pytest.Config) -> CollectedFiles:
    if COLLECTED not in config.stash:
        config.stash[COLLECTED] = CollectedFiles(_library(config))
    return config.stash[COLLECTED]


class RuleCollector(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        try:
            file = collection_of(self.config).load(self.path)
        except BrokenFileError as error:
            raise self.CollectError(str(error)) from None
        if not isinstance(file.program, Definitions):
            for test in file.program.tests:
                yield BlockItem.from_parent(self, name=test.title, file=file, test=test)
        if isinstance(file.program, Rule):
            for promise in file.program.promises:
                name = promise.title or file.written(promise.span)
                yield PromiseItem.from_parent(self, name=name, file=file, promise=promise)


class BlockItem(pytest.Item):
    def __init__(self, *, file: RuleFile, test: Test, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = file
        self.block = test

    def runtest(self) -> None:
        outcome = run_test(self.file, self.block)
        collection_of(self.config).seen.update(marks(outcome.ran))
        if outcome.failures:
            raise UnmetError(outcome.failures)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return _describe(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.file.line(self.block.span) - 1, self.name


class PromiseItem(pytest.Item):
    """A `must`: passed if proved, failed by a payment, skipped if undecided."""

    def __init__(self, *, file: RuleFile, promise: Promise, **rest: Any) -> None:
        super().__init__(**rest)
        self.file = file
        self.promise = promise

    def runtest(self) -> None:
        pytest.importorskip("z3", reason="proofs need the extra `prove`")
        from tollkeeper.engine.offline.prove.proofs import next_step, prove_promise
        from tollkeeper.engine.offline.prove.worker import open_worker

        assert isinstance(self.file.program, Rule)
        with open_worker() as worker:
            proof = prove_promise(worker, str(self.path), self.file.program, self.promise)
        if proof.verdict.answer == "refuted":
            assert proof.verdict.witness is not None
            payment = msgspec.json.encode(proof.verdict.witness.facts.payment).decode()
            raise BrokenPromiseError(f"a payment breaks it:\n{proof.test or payment}")
        if proof.verdict.answer == "not proved":
            pytest.skip(f"not proved: {'; '.join(proof.verdict.because)}; {next_step(proof)}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return _describe(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.file.line(self.promise.span) - 1, self.name


class CaseCollector(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield CaseItem.from_parent(self, name=self.path.stem)


class CaseItem(pytest.Item):
    @property
    def obj(self) -> type:
        """Required by syrupy to name a snapshot; ours doesn't use it."""
        return CaseItem

    def runtest(self) -> None:
        known = collection_of(self.config)
        case = load_case(self.path, known.library)
        decided = decide_case(case)
        for each in decided:
            for ran in filter(None, (each.scorecard, each.rule)):
                known.seen.update(marks(ran))
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
        return _describe(self, excinfo, style)

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
        """Nothing: the text of a case that wasn't run isn't unused, and must not be removed."""
        return SnapshotCollections()


def coverage_of(config: pytest.Config) -> list[FileCoverage]:
    """Return the coverage of each collected file."""
    known, root = collection_of(config), config.rootpath
    return [
        coverage(os.path.relpath(path, root), file, known.seen)
        for path, file in sorted(known.files.items())
    ]


def for_controller(known: CollectedFiles) -> FromWorker:
    """Return what a worker of pytest-xdist has collected and covered, as plain values."""
    seen = [(str(path), id_, what) for path, id_, what in known.seen]
    return [str(path) for path in known.files], seen


def from_worker(known: CollectedFiles, sent: FromWorker) -> None:
    paths, seen = sent
    for path in paths:
        known.load(Path(path))
    known.seen.update(Mark(Path(path), id_, what) for path, id_, what in seen)


def _library(config: pytest.Config) -> Library:
    """Return what the rule files under the run's paths declare for one another."""
    started_in = config.invocation_params.dir
    paths = [started_in / argument.split("::")[0] for argument in config.args]
    folders = [path if path.is_dir() else path.parent for path in paths]
    # Hidden folders hold environments and tools, not the author's rules.
    return library_of(
        file
        for folder in folders
        for file in rule_files([folder])
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


def _describe(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], style: Any) -> Any:
    if isinstance(excinfo.value, _REPORTED_ERRORS):
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
