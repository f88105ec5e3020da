"""Check a text before it is stored: diagnostics, layout, tests, coverage, and the windows it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.coverage import Goal, Mark, coverage, marks, percent
from tollkeeper.engine.offline.testing.files import (
    RuleFile,
    StoredLibrary,
    load_alone,
    read_library,
)
from tollkeeper.engine.offline.testing.outcomes import BlockError, Failure
from tollkeeper.engine.programs.compile.explain import written_histories
from tollkeeper.engine.programs.loaded import reading_of
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.diff import Difference, Side, diff_sides, side_of
from tollkeeper.engine.publish.needs import AccountNeed, needs_of_program
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.registry.state import Version
from tollkeeper.engine.registry.versions import program_kind
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.program import Definitions, Program, Test
from tollkeeper.grammar.syntax import Span


class CheckedTest(NamedTuple):
    """The result of one of the text's tests; `error` says why it could not be run."""

    title: str
    span: Span
    failures: tuple[Failure, ...]
    error: str | None = None


class CheckedCoverage(NamedTuple):
    """The tests' coverage in percent of all `goals`, and the goals that were missed."""

    percent: float
    goals: int
    missed: tuple[Goal, ...]


class NeededWindow(NamedTuple):
    """An aggregate over history that the text reads: `text` as written, `series` the data that its
    window keeps, `over` its span (µs), None for all of history.
    """

    text: str
    series: str
    over: int | None


class CheckedText(NamedTuple):
    """`kind` and `name` are what the text declares, None if it has errors; `formatted` is None if
    it can't be formatted; `needs` are the lists and rates that it needs."""

    kind: ProgramKind | None
    name: str | None
    diagnostics: tuple[Diagnostic, ...]
    formatted: str | None
    tests: tuple[CheckedTest, ...] = ()
    coverage: CheckedCoverage | None = None
    windows: tuple[NeededWindow, ...] = ()
    needs: tuple[AccountNeed, ...] = ()


def check_text(_progress: Progress, content: bytes, stored: StoredLibrary) -> CheckedText:
    """Parse, check, format and test a text; never raises, whatever the bytes."""
    library = read_library(stored)
    reading = read_file(content, library.known)
    formatted = _format_or_none(reading.text)
    program = reading.program
    if program is None:
        return CheckedText(None, None, reading.diagnostics, formatted)
    kind = program_kind(program)
    if isinstance(program, Definitions):
        needs = needs_of_program(program)
        return CheckedText(kind, program.name, reading.diagnostics, formatted, needs=needs)
    file = load_alone(reading, program, library)
    seen: set[Mark] = set()
    tests = tuple(_check_test(file, test, seen) for test in program.tests)
    covered = coverage(program.name, file, seen)
    return CheckedText(
        kind=kind,
        name=program.name,
        diagnostics=reading.diagnostics,
        formatted=formatted,
        tests=tests,
        coverage=CheckedCoverage(percent([covered]), len(covered.goals), covered.missed),
        windows=tuple(_windows(program, file.texts)),
        needs=needs_of_program(program),
    )


def differences_from(
    _progress: Progress, content: bytes, stored: StoredLibrary, active: Version
) -> tuple[Difference, ...]:
    """The differences in meaning between a stored version and a text; empty for one with errors."""
    library = read_library(stored)
    reading = read_file(content, library.known)
    program = reading.program
    assert program is not None
    texts: dict[str | None, str] = {None: reading.text}
    texts |= dict(reading.shipped.items())
    texts |= {name: text for name, text in library.texts.items() if name in reading.uses}
    return diff_sides(side_of(active), Side(program, texts))


def _format_or_none(text: str) -> str | None:
    try:
        return format_file(text)
    except ValueError:
        return None


def _check_test(file: RuleFile, test: Test, seen: set[Mark]) -> CheckedTest:
    try:
        outcome = run_test(file, test)
    except BlockError as error:
        return CheckedTest(test.title, test.span, (), str(error))
    seen.update(marks(outcome.ran))
    return CheckedTest(test.title, test.span, outcome.failures)


def _windows(program: Program, texts: Mapping[str | None, str]) -> Iterator[NeededWindow]:
    if isinstance(program, Definitions):
        return
    windows = reading_of(program, full_vocabulary()).plan.windows
    for text, window in zip(written_histories(program, texts), windows, strict=True):
        yield NeededWindow(text, window.series, window.over)
