"""Diagnostics as a person, a program and a code host read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.fixes import replacing
from tollkeeper.grammar.render import (
    MAX_CELLS,
    MAX_SHOWN,
    Source,
    as_json,
    as_rich,
    as_sarif,
    as_text,
)
from tollkeeper.grammar.syntax import Span
from tollkeeper.tests.examples import examples

TEXT = 'rule checkout\n  condition visa\n    when method.card.netwrok == "visa"\n    then allow\n'
START = TEXT.index("netwrok")
UNKNOWN = Diagnostic(
    "unknown-name",
    "error",
    Span(START, START + 7),
    "there is no field `method.card.netwrok`",
    "did you mean `network`?",
    (replacing(Span(START, START + 7), "network"),),
)
UNUSED = Diagnostic("unused-let", "warning", Span(0, 4), "`x` is never used")


def under(text: str, marked: str) -> str:
    """What is shown when `marked` is underlined in `text`."""
    start = text.index(marked)
    found = Diagnostic("a-code", "error", Span(start, start + len(marked)), "wrong", "mend it")
    return as_text(Source.of("a.rule", text), [found])


def test_a_diagnostic_is_shown_as_the_language_says():
    assert as_text(Source.of("checkout.rule", TEXT), [UNKNOWN]) == (
        "checkout.rule:3:22 error[unknown-name]: there is no field `method.card.netwrok`\n"
        '  3 |     when method.card.netwrok == "visa"\n'
        "    |                      ^^^^^^^ did you mean `network`?\n"
    )


def test_the_coloured_page_says_the_same():
    source = Source.of("checkout.rule", TEXT)
    coloured = as_rich(source, [UNKNOWN, UNUSED])
    assert coloured.plain == as_text(source, [UNKNOWN, UNUSED])
    assert {str(span.style) for span in coloured.spans} >= {"bold red", "bold yellow", "cyan"}


def test_past_a_page_only_their_number_is_told():
    page = as_text(Source.of("checkout.rule", TEXT), [UNKNOWN] * (MAX_SHOWN + 3))
    assert page.count("unknown-name") == MAX_SHOWN
    assert page.endswith("\nand 3 more\n")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("\tlet x = y", "y"),
        ('let x = "日本語" + y', "y"),
        ('let x = "日本語" + y', "日本語"),
        ('let x = "e\u0301e\u0301" + y', "y"),
        ('let x = "\u202eabc" + y', "y"),
        ('let x = "👍" + y', "y"),
    ],
)
def test_the_carets_stand_under_the_span(text, marked):
    _, line, carets = under(text, marked).splitlines()
    shown = line.index(marked)
    assert cell_len(line[:shown]) == carets.index("^")
    assert cell_len(marked) == carets.count("^")


def test_a_very_long_line_is_shown_around_the_span():
    _, line, carets = under(
        "let x = " + "a + " * 500 + "wrong" + " + b" * 500, "wrong"
    ).splitlines()
    assert cell_len(line) <= MAX_CELLS + 10
    assert line.index("wrong") == carets.index("^")
    assert line.endswith("…")


def test_a_span_over_several_lines_is_underlined_to_the_end_of_the_first():
    _, line, carets = under("let x = (a\n + b)\n", "(a\n + b)").splitlines()
    assert line == "  1 | let x = (a"
    assert carets == "    |         ^^ mend it"


def test_a_place_at_the_end_of_a_file_gets_one_caret():
    found = Diagnostic("a-code", "error", Span(6, 6), "something is missing")
    assert as_text(Source.of("a.rule", "rule x"), [found]).splitlines()[1:] == [
        "  1 | rule x",
        "    |       ^",
    ]


def test_text_from_a_file_cannot_move_the_cursor():
    shown = under("let x = \u202e\x1b[31my", "y")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=200), st.data())
def test_any_span_of_any_text_can_be_shown(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = Diagnostic("a-code", "error", Span(start, end), "wrong")
    source = Source.of("a.rule", text)
    _, line, carets = as_text(source, [found]).split("\n")[:3]
    assert carets.count("^") >= 1
    assert cell_len(line) <= MAX_CELLS + 15
    assert json.dumps(as_json(source, [found]))


def test_a_program_gets_an_object_for_each(snapshot):
    assert as_json(Source.of("checkout.rule", TEXT), [UNKNOWN, UNUSED]) == snapshot


def test_a_code_host_gets_sarif(snapshot):
    log = as_sarif([(Source.of("rules/checkout.rule", TEXT), [UNKNOWN, UNUSED])])
    assert log == snapshot
