"""Every message of the parser, as its reader sees it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tollkeeper.grammar import check_errors, syntax_errors
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import parse, parse_bytes
from tollkeeper.grammar.render import Source, as_text
from tollkeeper.grammar.syntax import Span

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.rule"))
WHOLE_FILES = {
    "file_too_large": b"#" * (256 * 1024 + 1),
    "not_utf8": b'rule checkout "Caf\xe9"\n',
    "control_character": b"rule checkout\x00\n",
    "too_many_conditions": b"rule x\n" + b"condition c when a then deny\n" * 501,
    "too_many_lets": b"rule x\n" + b"let a = 1\n" * 501,
    "too_many_items": b"event x\n" + b"monitor m when a\n" * 101,
    "too_many_errors": b"rule x\n" + b"let\n" * 300,
}


def messages() -> set[str]:
    return {
        name
        for name, function in inspect.getmembers(syntax_errors, inspect.isfunction)
        if function.__module__ == syntax_errors.__name__ and not name.startswith("_")
    }


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_gets_its_message(path, snapshot):
    text = path.read_text()
    diagnostics = parse(text).diagnostics
    assert path.stem.replace("_", "-") in {diagnostic.code for diagnostic in diagnostics}
    assert as_text(Source.of(path.name, text), diagnostics) == snapshot


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_file_past_a_bound_gets_its_message(name, snapshot):
    content = WHOLE_FILES[name]
    diagnostics = parse_bytes(content).diagnostics
    assert name.replace("_", "-") in {diagnostic.code for diagnostic in diagnostics}
    text = content.decode("utf-8", "replace")
    assert as_text(Source.of(f"{name}.rule", text), diagnostics[-1:]) == snapshot


def test_every_message_has_a_broken_file():
    assert messages() == {path.stem for path in BROKEN} | set(WHOLE_FILES)


def every_diagnostic() -> list[Diagnostic]:
    return [found for path in BROKEN for found in parse(path.read_text()).diagnostics]


def test_messages_are_one_line_in_lower_case_without_a_full_stop():
    for diagnostic in every_diagnostic():
        for line in filter(None, (diagnostic.message, diagnostic.help)):
            assert "\n" not in line
            assert not line.endswith(".")
            assert not line[0].isupper()


def test_no_message_speaks_of_tokens():
    for diagnostic in every_diagnostic():
        spoken = f"{diagnostic.message} {diagnostic.help or ''}".lower()
        assert not any(word in spoken for word in ("token", "terminal", "parse", "expected"))


def test_what_a_list_can_hold_is_told_alike_by_parser_and_checker():
    read = syntax_errors.computed_item(Span(0, 1), "+")
    checked = check_errors.list_item(Span(0, 1))
    assert read.message.startswith(checked.message)
    assert read.help == checked.help


@pytest.mark.parametrize("kind", ["rule", "scorecard", "event", "definitions"])
def test_a_name_of_64_characters_is_the_longest(kind):
    assert parse(f"{kind} {'n' * 64}\nlet {'l' * 64} = 1").diagnostics == ()
    assert [found.code for found in parse(f"{kind} {'n' * 65}").diagnostics] == ["name-too-long"]
