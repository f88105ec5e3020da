"""Whether a file may be published: its own tests pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tollkeeper.engine.offline.in_child import run_in_child
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import (
    BrokenFileError,
    Library,
    RuleFile,
    library_of,
    load_file,
    load_text,
)
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.engine.registry.known import known_of
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import active_version
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions
from tollkeeper.grammar.syntax import Span

TESTS_S: Final = 30.0
"""How long the tests of a text that is published over HTTP may take."""
_MAY_HAVE_TESTS = re.compile(rb"\btest\b")


def failing_tests_at(path: Path) -> list[Diagnostic]:
    """The tests of a file that fail or can't be run. Raises `BrokenFileError`."""
    return list(_failing_tests(load_file(path, library_of([path.parent]))))


async def failing_tests_of(account: Account, content: bytes) -> list[Diagnostic]:
    """The same of a text among what the account has published; none of a text with errors.

    A test that takes files fails: there are none beside the text.
    """
    if _MAY_HAVE_TESTS.search(content) is None:
        return []
    try:
        return await run_in_child(TESTS_S, _failing_in, content, _library_of_account(account))
    except TimeoutError:
        words = f"the tests take longer than {TESTS_S:g} seconds"
        return [Diagnostic("failing-test", "error", Span(0, 0), words, _HELP)]


def _failing_in(content: bytes, library: Library) -> list[Diagnostic]:
    try:
        return list(_failing_tests(load_text(content, library)))
    except BrokenFileError:
        return []


def _library_of_account(account: Account) -> Library:
    texts: dict[str | None, str] = {}
    for kind, name in account.files:
        version = active_version(account, kind, name)
        if version is not None and kind in ("definitions", "event"):
            texts[name] = version.text
    return Library(known_of(account), texts)


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
