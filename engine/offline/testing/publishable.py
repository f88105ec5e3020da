"""Whether a file may be published: its tests pass, and no payment breaks its `must` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final

from tollkeeper.engine.offline.jobs.jobs import JobExceededError, Jobs
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import (
    Library,
    RuleFile,
    StoredLibrary,
    library_of,
    load_alone,
    load_file,
    read_library,
    stored_library,
)
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions, Rule
from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span

TESTS_S: Final = 30.0
"""The longest time (s) for the tests of a text that is published over HTTP."""
PROMISES_S: Final = 20.0
"""How long publishing waits for the proofs of all `must` lines together."""
_NAMED = 10
"""The most lines that a message names, and the most that are warned of one by one."""
_MAY_HAVE_ERRORS = re.compile(rb"\b(?:test|must)\b")


def try_file(path: Path, thresholds: Thresholds) -> list[Diagnostic]:
    """A file's tests that fail or can't be run, and its `must` lines that a payment breaks; as a
    warning, those that are not proved or were not tried.

    Raises `BrokenFileError`."""
    return list(_try(load_file(path, library_of([path.parent])), thresholds))


async def try_beside(jobs: Jobs, account: Account, content: bytes) -> list[Diagnostic]:
    """Call `try_text` in another process."""
    if _MAY_HAVE_ERRORS.search(content) is None:
        return []
    stored, thresholds = stored_library(account), account.settings.thresholds
    try:
        return await jobs.brief(account.number, TESTS_S, _try_in, content, stored, thresholds)
    except JobExceededError as error:
        return [Diagnostic("failing-test", "error", Span(0, 0), f"its tests: {error}", _HELP)]


def _try_in(
    _progress: Progress, content: bytes, stored: StoredLibrary, thresholds: Thresholds
) -> list[Diagnostic]:
    return try_text(content, read_library(stored), thresholds)


def try_text(content: bytes, library: Library, thresholds: Thresholds) -> list[Diagnostic]:
    """The same for a text, with an account's library; empty for a text with errors.

    A test that refers to files fails: a text has no folder.
    """
    reading = read_file(content, library.known)
    if reading.program is None:
        return []
    return list(_try(load_alone(reading, reading.program, library), thresholds))


def _try(file: RuleFile, thresholds: Thresholds) -> Iterator[Diagnostic]:
    yield from _failing_tests(file)
    if isinstance(file.program, Rule) and file.program.promises:
        yield from _try_promises(file, file.program, thresholds)


def _try_promises(file: RuleFile, rule: Rule, thresholds: Thresholds) -> Iterator[Diagnostic]:
    """The `must` lines that a payment breaks; as warnings, those that are not proved or were not
    tried.
    """
    source = Source.of(file.path.name, file.text)
    if find_spec("z3") is None:
        lines = _lines(source, [promise.span for promise in rule.promises])
        tried = "here, which needs the extra `prove`"
        yield _untried(rule.promises[0].span, f"{lines[0]} not tried {tried}: {lines[1]}")
        return
    from tollkeeper.engine.offline.prove.proofs import next_step, prove_promise
    from tollkeeper.engine.offline.prove.worker import open_worker

    untried, unproved = list[Span](), list[Span]()
    with open_worker(within=PROMISES_S) as worker:
        for promise in rule.promises:
            proof = prove_promise(worker, file.path.name, rule, promise, thresholds)
            of = promise.title or one_line(file.text[promise.span.start : promise.span.end])
            if proof.verdict.answer == "refuted":
                message = f"`{of}` does not hold: {proof.payment}"
                yield Diagnostic("broken-must", "error", promise.span, message, _HELP)
            elif proof.verdict.answer == "not proved" and worker.is_late():
                untried.append(promise.span)
            elif proof.verdict.answer == "not proved":
                unproved.append(promise.span)
                message = f"`{of}` is not proved: {'; '.join(proof.verdict.because)}"
                if len(unproved) <= _NAMED:
                    yield _unproved(promise.span, message, next_step(proof))
    if others := unproved[_NAMED:]:
        lines = _lines(source, others)
        yield _unproved(
            others[0], f"{lines[0]} not proved either: {lines[1]}", "`toll prove` says why"
        )
    if untried:
        lines = _lines(source, untried)
        yield _untried(untried[0], f"{lines[0]} not tried in {PROMISES_S:g} seconds: {lines[1]}")


def _lines(source: Source, spans: Sequence[Span]) -> tuple[str, str]:
    """How many `must` lines there are, in words, and where the first ones are."""
    lines = ", ".join(str(source.position(each.start)[0]) for each in islice(spans, _NAMED))
    more = f" and {len(spans) - _NAMED} more" if len(spans) > _NAMED else ""
    named = "1 `must` line was" if len(spans) == 1 else f"{len(spans)} `must` lines were"
    return named, f"line {lines}{more}"


def _unproved(span: Span, message: str, help_: str) -> Diagnostic:
    return Diagnostic("unproved-must", "warning", span, message, help_)


def _untried(span: Span, message: str) -> Diagnostic:
    return Diagnostic("untried-must", "warning", span, message, "`toll prove` tries all")


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


_HELP = "mend the rule, or what is said of it; `untested` publishes it as it is"


def _failing(span: Span, title: str, words: str) -> Diagnostic:
    message = f"the test `{title}` fails: {' '.join(words.split())}"
    return Diagnostic("failing-test", "error", span, message, _HELP)
