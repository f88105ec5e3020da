"""Whether a file may be published: its own tests pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions
from tollkeeper.grammar.syntax import Span


def failing_tests(path: Path) -> Iterator[Diagnostic]:
    """The tests of a file that fail or can't be run. Raises `BrokenFileError`."""
    file = load_file(path, library_of([path.parent]))
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


def _failing(span: Span, title: str, words: str) -> Diagnostic:
    message = f"the test `{title}` fails: {' '.join(words.split())}"
    help_ = "mend the rule or the test; `--untested` publishes it as it is"
    return Diagnostic("failing-test", "error", span, message, help_)
