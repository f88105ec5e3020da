"""Whether a file may be published: its own tests pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tollkeeper.engine.offline.jobs.jobs import JobExceededError, Jobs
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import (
    Library,
    RuleFile,
    library_of,
    library_of_account,
    load_alone,
    load_file,
)
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions
from tollkeeper.grammar.syntax import Span

TESTS_S: Final = 30.0
"""How long the tests of a text that is published over HTTP may take."""
_MAY_HAVE_TESTS = re.compile(rb"\btest\b")


def failing_tests_at(path: Path) -> list[Diagnostic]:
    """The tests of a file that fail or can't be run. Raises `BrokenFileError`."""
    return list(_failing_tests(load_file(path, library_of([path.parent]))))


async def failing_tests_of(jobs: Jobs, account: Account, content: bytes) -> list[Diagnostic]:
    """What `failing_tests_among` finds, in another process."""
    if _MAY_HAVE_TESTS.search(content) is None:
        return []
    library = library_of_account(account)
    try:
        return await jobs.brief(account.number, TESTS_S, _failing_in, content, library)
    except JobExceededError as error:
        return [Diagnostic("failing-test", "error", Span(0, 0), f"its tests: {error}", _HELP)]


def _failing_in(_progress: Progress, content: bytes, library: Library) -> list[Diagnostic]:
    return failing_tests_among(content, library)


def failing_tests_among(content: bytes, library: Library) -> list[Diagnostic]:
    """The same of a text among what an account has; none of a text with errors.

    A test that takes files fails: there are none beside the text.
    """
    reading = read_file(content, library.known)
    if reading.program is None:
        return []
    return list(_failing_tests(load_alone(reading, reading.program, library)))


def _failing_tests(file: RuleFile) -> Iterator[Diagnostic]:
    if isinstance(file.program, Definitions):
        return
    for test in file.program.tests:
        try:
            failures = run_test(file, test).failures
        except BlockError as error:
            yield _failing(test.span, test.title, str(error))
            continue
        for failure in failures:
            words = f"expected {failure.expected}, came out {failure.came_out}"
            yield _failing(test.span, test.title, words)


_HELP = "mend the rule or the test; `untested` publishes it as it is"


def _failing(span: Span, title: str, words: str) -> Diagnostic:
    message = f"the test `{title}` fails: {' '.join(words.split())}"
    return Diagnostic("failing-test", "error", span, message, _HELP)
