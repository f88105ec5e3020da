"""Every message of the checker, as its reader sees it."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

import pytest

from tollkeeper.grammar import check_errors, check_warnings
from tollkeeper.grammar.checker import check
from tollkeeper.grammar.checker.warnings import MAX_WARNINGS
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.render import Source, as_text

MISTAKES = sorted((Path(__file__).parent / "mistakes").glob("*.rule"))


TOO_MANY = "rule x\n" + "".join(f"  list l{number}: string\n" for number in range(300))


def diagnostics_of(path: Path, vocabulary, known):
    text = path.read_text()
    parsed = parse(text)
    assert parsed.file is not None
    return check(parsed.file, text, vocabulary, known, parsed.lost).diagnostics


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_a_file_with_mistakes_gets_its_messages(path, vocabulary, known, snapshot):
    source = Source.of(path.name, path.read_text())
    found = diagnostics_of(path, vocabulary, known)
    shown = [as_text(source, [diagnostic]) for diagnostic in found]
    assert "\n".join(shown) == snapshot


def test_a_file_with_ever_so_many_warnings_shows_some_and_says_that_there_are_more(
    check_text, snapshot
):
    found = check_text(TOO_MANY).diagnostics
    assert [each.code for each in found] == ["unused"] * MAX_WARNINGS + ["too-many-warnings"]
    assert as_text(Source.of("too_many_warnings.rule", TOO_MANY), found[-1:]) == snapshot


def test_every_message_has_a_mistake_that_it_is_said_of(vocabulary, known, check_text, monkeypatch):
    said = set()
    all_messages = set()

    def listening(message):
        @functools.wraps(message)
        def heard(*args, **named):
            said.add(message.__name__)
            return message(*args, **named)

        return heard

    for module in (check_errors, check_warnings):
        for name, message in inspect.getmembers(module, inspect.isfunction):
            if message.__module__ == module.__name__ and not name.startswith("_"):
                all_messages.add(name)
                monkeypatch.setattr(module, name, listening(message))
    for path in MISTAKES:
        diagnostics_of(path, vocabulary, known)
    check_text(TOO_MANY)
    assert said == all_messages


def test_messages_are_one_line_in_lower_case_without_a_full_stop(vocabulary, known):
    for path in MISTAKES:
        for found in diagnostics_of(path, vocabulary, known):
            for line in (found.message, found.help or "help"):
                assert "\n" not in line
                assert not line.endswith(".")
                assert line[0] == line[0].lower()
