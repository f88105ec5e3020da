"""A regular expression's formula finds what RE2 finds."""

from __future__ import annotations

import os

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.offline.prove.regexes import found_in
from tollkeeper.engine.offline.prove.terms import UnsayableError, text_formula
from tollkeeper.grammar.regexes import compile_regex

EXPRESSIONS = int(os.environ.get("TOLLKEEPER_EXPRESSIONS", "100"))
_ATOMS = ("a", "K", "s", "é", ".", "[0-9]", "[^a-c]", r"\d", r"\W", r"\s", r"\.", "", "-")
_TEXTS = st.text(alphabet="aAbkKsS\u017f\u212aé0 9\n._-", max_size=6)


def _patterns() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(_ATOMS)
    inner = st.recursive(
        atoms,
        lambda part: st.one_of(
            st.tuples(part, part).map("".join),
            st.tuples(part, part).map(lambda two: f"({two[0]}|{two[1]})"),
            st.tuples(part, st.sampled_from(("*", "+", "?", "{1,2}"))).map(
                lambda two: f"(?:{two[0]}){two[1]}"
            ),
        ),
        max_leaves=4,
    )
    return st.tuples(st.sampled_from(("", "^")), inner, st.sampled_from(("", "$"))).map("".join)


@settings(max_examples=EXPRESSIONS, deadline=None)
@given(_patterns(), st.booleans(), _TEXTS)
def test_it_finds_what_re2_finds(pattern: str, ignore_case: bool, text: str) -> None:
    try:
        formula = found_in(pattern, ignore_case)
    except UnsayableError:
        return
    found = compile_regex(pattern, ignore_case).search(text) is not None
    solver = z3.Solver()
    solver.add(z3.InRe(text_formula(text), formula) != found)
    assert solver.check() == z3.unsat


@pytest.mark.parametrize(
    "pattern", [r"\bcard\b", r"\p{Greek}", "a^b|(a$)b", "(?i:a)b", "[[:alpha:]]", "a{,2}"]
)
def test_what_the_two_syntaxes_do_not_share_has_no_formula(pattern: str) -> None:
    with pytest.raises(UnsayableError):
        found_in(pattern, False)
