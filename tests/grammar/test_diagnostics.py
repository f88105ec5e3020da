"""Every diagnostic has a page, and the page's examples do what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tollkeeper.grammar import check_errors, check_warnings, syntax_errors
from tollkeeper.grammar.catalogue import CODES, PUBLISH_ERRORS, PUBLISH_WARNINGS
from tollkeeper.grammar.checker import CheckOutcome, check
from tollkeeper.grammar.parser import parse

PAGES = Path(__file__).parents[2] / "docs" / "diagnostics"
PAGE = re.compile(
    r"# `(?P<code>[a-z0-9-]+)`\n\n(?P<summary>[^\n]+)\n\n"
    r"## Avoid\n\n```(?P<kind>rule|text)\n(?P<avoid>.*?)\n```\n\n"
    r"## Prefer\n\n```(?:rule|text)\n(?P<prefer>.*?)\n```\n\n"
    r"## Why\n\n[^\n]+\n",
    re.DOTALL,
)


def found_in(text: str, vocabulary, known) -> set[str]:
    """The codes of all diagnostics of a file, syntax errors included."""
    parsed = parse(text)
    checked = (
        check(parsed.file, text, vocabulary, known, parsed.lost)
        if parsed.file is not None
        else CheckOutcome(None, ())
    )
    return {found.code for found in (*parsed.diagnostics, *checked.diagnostics)}


def test_the_catalogue_holds_every_code_that_a_message_has():
    written = {
        code
        for module in (syntax_errors, check_errors, check_warnings)
        for code in re.findall(
            r'_(?:error|warning|misspelling)\(\s*"([a-z0-9-]+)"', Path(module.__file__).read_text()
        )
    }
    assert written == set(CODES) - {*PUBLISH_ERRORS, *PUBLISH_WARNINGS}


def test_every_code_has_a_page_and_every_page_a_code():
    assert {page.stem for page in PAGES.glob("*.md")} == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_page_says_what_to_avoid_what_to_prefer_and_why(code, vocabulary, known):
    page = PAGE.fullmatch((PAGES / f"{code}.md").read_text())
    assert page is not None
    assert page["code"] == code
    if page["kind"] == "rule":
        assert code in found_in(page["avoid"], vocabulary, known)
        preferred = found_in(page["prefer"], vocabulary, known)
        assert code not in preferred
        assert not [each for each in preferred if CODES[each] == "error"]
