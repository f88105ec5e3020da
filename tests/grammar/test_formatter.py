"""The formatter: what it lays out, and that it changes nothing else."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.grammar import syntax
from tollkeeper.grammar.formatter import WIDTH, format_file
from tollkeeper.grammar.parser import parse
from tollkeeper.tests.examples import examples

CORRECT = sorted((Path(__file__).parent / "correct").glob("*.rule"))


def bare(node: object) -> object:
    """A tree without its ids, its spans and its comments."""
    if isinstance(node, syntax.Node):
        kept = [f.name for f in fields(node) if f.name not in ("id", "span", "comments")]
        return (type(node).__name__, *(bare(getattr(node, name)) for name in kept))
    return tuple(map(bare, node)) if isinstance(node, tuple) else node


def read(text: str) -> syntax.File:
    parsed = parse(text)
    assert parsed.diagnostics == (), text
    assert parsed.file is not None
    return parsed.file


# Texts over the whole syntax, as lists of tokens: what stands between them is drawn afterwards.

WORDS = st.sampled_from(["a", "bb", "amount", "user", "a_rather_long_name_for_a_field", "order1"])
MEMBERS = st.sampled_from(["id", "condition", "by", "network", "fingerprint", "is"])
TEXTS = st.sampled_from(
    ['""', '"declined"', '"a # in a text"', '"\\"\\u{e9}"', '"' + "x" * 50 + '"']
)
NUMBERS = st.sampled_from(["0", "10.00", "41111111"])
DURATIONS = st.sampled_from(["500ms", "5s", "10m", "24h", "7d"])
COMPARISONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
ACTIONS = st.sampled_from(["allow", "challenge", "deny"])
Tokens = list[str]


def separated(parts: st.SearchStrategy[Tokens], by: str, least: int) -> st.SearchStrategy[Tokens]:
    return st.lists(parts, min_size=least, max_size=4).map(
        lambda drawn: [token for part in drawn for token in (by, *part)][1:]
    )


def joined(*parts: st.SearchStrategy[Tokens] | st.SearchStrategy[str] | str) -> st.SearchStrategy:
    strategies = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map(
        lambda drawn: [t for part in drawn for t in ([part] if isinstance(part, str) else part)]
    )


def optional(strategy: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.just([]) | strategy


def larger(inner: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    several = separated(inner, ",", 1)
    operand = joined("(", inner, ")") | PATHS | LITERALS
    call = joined(
        WORDS,
        "(",
        optional(st.just(["earlier"])),
        separated(inner, ",", 0) | joined(inner, "of", WORDS),
        optional(joined("by", several)),
        optional(joined("over", DURATIONS)),
        optional(joined("half", "life", DURATIONS)),
        optional(joined("where", inner)),
        ")",
    )
    return st.one_of(
        call,
        joined("(", inner, ")"),
        joined(WORDS, "[", several, "]", ".", MEMBERS),
        joined("-", operand),
        joined("not", operand),
        joined(operand, st.sampled_from(["+", "-", "*", "/"]), operand),
        joined(operand, COMPARISONS, operand),
        joined(operand, "between", operand, "and", operand),
        joined(operand, optional(st.just(["not"])), "in", "[", separated(LITERALS, ",", 0), "]"),
        joined(
            operand, st.sampled_from([["contains"], ["starts", "with"], ["ends", "with"]]), TEXTS
        ),
        joined(operand, "matches", st.sampled_from(["/^a/", "/a\\/b#/i"])),
        joined(operand, "is", st.sampled_from(["missing", "present"])),
        separated(operand, "or", 2),
        separated(operand | joined("not", operand), "and", 2),
        separated(separated(operand, "and", 1), "or", 2),
    )


LITERALS = st.one_of(TEXTS, NUMBERS, DURATIONS, st.just("true")).map(lambda token: [token])
PATHS = joined(WORDS | st.just("@list"), optional(joined(".", MEMBERS)))
EXPRESSIONS = st.recursive(PATHS | LITERALS, larger, max_leaves=12)
TITLES = optional(TEXTS.map(lambda token: [token]))
TYPES = st.just(["string"]) | separated(TEXTS.map(lambda token: [token]), "|", 1)
COLUMNS = separated(joined(WORDS, ":", TYPES), ",", 1)
TESTS = joined(
    "test",
    TEXTS,
    st.lists(
        joined("given", separated(joined(PATHS, "=", EXPRESSIONS), ",", 1))
        | joined("given", "history", TEXTS),
        max_size=2,
    ).map(lambda several: list(chain.from_iterable(several))),
    st.lists(
        joined("expect", ACTIONS, "by", WORDS)
        | joined("expect", "default")
        | joined("expect", "no", "alert")
        | joined("expect", PATHS, COMPARISONS, NUMBERS),
        min_size=1,
        max_size=2,
    ).map(lambda several: list(chain.from_iterable(several))),
)
SHARED = st.one_of(
    joined("use", WORDS),
    joined("list", WORDS, ":", TYPES),
    joined("table", WORDS, optional(st.just(["by", "prefix"])), ":", COLUMNS),
    joined("let", WORDS, "=", EXPRESSIONS),
    TESTS,
)
CONDITIONS = joined("condition", WORDS, TITLES, "when", EXPRESSIONS, "then", ACTIONS)
MUSTS = joined(
    "must",
    TITLES,
    "when",
    EXPRESSIONS,
    st.sampled_from(["never", "always"]),
    separated(ACTIONS.map(lambda action: [action]), ",", 1),
)
STEPS = joined("<", NUMBERS, ":", NUMBERS, ",")
CURVES = joined(
    *("signal", WORDS, TITLES, "curves", EXPRESSIONS),
    optional(st.sampled_from([["rising"], ["falling"]])),
    *("{", STEPS, STEPS, "else", NUMBERS, optional(joined(",", "missing", ":", NUMBERS)), "}"),
)
SIGNALS = joined(
    "signal", WORDS, TITLES, "adds", EXPRESSIONS, optional(joined("when", EXPRESSIONS))
)
EVENT_ITEMS = st.one_of(
    joined("field", WORDS, ":", TYPES, optional(st.just(["required"]))),
    joined("metric", WORDS, TITLES, "=", EXPRESSIONS),
    joined("label", WORDS, "of", PATHS, "when", EXPRESSIONS),
    joined(
        "monitor",
        WORDS,
        TITLES,
        "when",
        EXPRESSIONS,
        optional(joined("by", separated(EXPRESSIONS, ",", 1))),
        optional(joined("every", DURATIONS)),
    ),
)


def items(strategy: st.SearchStrategy[Tokens]) -> st.SearchStrategy[Tokens]:
    return st.lists(strategy, max_size=4).map(lambda several: list(chain.from_iterable(several)))


FILES = st.one_of(
    joined(
        "rule",
        WORDS,
        TITLES,
        items(SHARED | CONDITIONS | MUSTS),
        "otherwise",
        ACTIONS,
        items(TESTS),
    ),
    joined(
        "scorecard",
        WORDS,
        TITLES,
        items(SHARED | SIGNALS | CURVES | joined("baseline", EXPRESSIONS)),
    ),
    joined("event", WORDS, TITLES, items(SHARED | EVENT_ITEMS)),
)
SPACES = st.sampled_from(
    [" "] * 12 + ["\n", "\n\n", "\n\n\n\t", "\r\n"] + ["  # note\n", "\n # own\n"]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A correct file, laid out anyhow, each comment with its number."""
    tokens = draw(FILES)
    written = [draw(st.sampled_from(["", "# first\n", "\n\n"]))]
    for index, token in enumerate(tokens):
        space = draw(SPACES)
        written += [token, space.replace("note", f"note {index}").replace("own", f"own {index}")]
    return "".join(written)


@settings(max_examples=examples(250), deadline=None)
@given(texts())
def test_formatting_changes_neither_the_meaning_nor_a_comment_and_is_done_once(text):
    before = read(text)
    formatted = format_file(text)
    after = read(formatted)
    assert bare(after) == bare(before)
    assert [c.text for c in after.comments] == [c.text for c in before.comments]
    assert format_file(formatted) == formatted


@settings(max_examples=examples(60), deadline=None)
@given(texts())
def test_no_line_ends_in_a_space_and_no_two_blank_lines_follow_each_other(text):
    formatted = format_file(text)
    assert formatted.endswith("\n")
    assert not formatted.startswith("\n")
    assert "\n\n\n" not in formatted
    assert all(line == line.rstrip() for line in formatted.splitlines())


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_a_file_is_laid_out(path, snapshot):
    text = path.read_text()
    formatted = format_file(text)
    assert bare(read(formatted)) == bare(read(text))
    assert formatted == snapshot
    assert max(map(len, formatted.splitlines())) <= WIDTH


COMMENTED = """# about the file
rule    a "x"   # after the header
# about b
  let b=-5+ -3*( 2 - -1)  # after b

  # on its own


  # about c
  condition   c "C" # after c
     # before when
     when (a or # after or
       # before b
       b) and @x[ method.card.bin ] . country in [ "a" , # after a
       "b" ] and not ( # after the bracket
      x
      ) and amount between 1 and 5 # after 5
     # before then
     then # after then
     allow # after allow
  # about otherwise
  otherwise default
# at the end
"""


def test_comments_stay_where_they_are(snapshot):
    assert format_file(COMMENTED) == snapshot


LONG = """rule long
 let risky = count(payments by method.card.fingerprint, device.fingerprint.id over 24h where status == "declined" or status == "failed" and amount > 100.00) > 5
 table bins by prefix: country: string, funding: "credit" | "debit" | "prepaid", another_column: string, last: number
 condition z when merchant.id in ["aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccccccccccc"] and (amount > 5000000 or amount_in("USD") > 100000000 or user.email ends with "@example.com" and device is missing) or score > 0.5 and score < 0.7 then deny
 test "x" given amount = 5.00, method.card.bin = "41111111", device.ip_address = "10.0.0.1", user.email = "a@b.example" expect deny by z
"""


def test_what_is_too_long_is_broken_at_its_loosest_operators(snapshot):
    assert format_file(LONG) == snapshot


def test_brackets_stay_as_the_author_set_them():
    assert "when ((a)) or (b and c)" in format_file(
        "rule x condition y when ((a)) or (b and c) then deny"
    )


def test_a_text_with_syntax_errors_is_not_formatted():
    with pytest.raises(ValueError, match="syntax errors"):
        format_file("rule x condition y when then deny")


@pytest.mark.parametrize(
    "expression",
    ["[" + "1," * 6_000 + "1]", "a and " * 4_000 + "a", "f(" * 63 + "1" + ")" * 63],
    ids=["list", "chain", "calls"],
)
def test_a_very_large_file_is_formatted(expression):
    formatted = format_file(f"rule x let a = {expression}")
    assert format_file(formatted) == formatted


def test_a_file_is_not_made_larger_than_a_file_may_be():
    with pytest.raises(ValueError, match="larger than 256 KiB"):
        format_file("rule x let a = [" + "1," * 40_000 + "1]")
