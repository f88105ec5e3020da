"""What the parser makes of correct texts, of broken ones, and of anything else."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tollkeeper.grammar import syntax
from tollkeeper.grammar.parser import (
    MAX_ERRORS,
    MAX_FILE_BYTES,
    ParsedFile,
    parse,
    parse_bytes,
    reserved_words,
)
from tollkeeper.tests.examples import examples

HERE = Path(__file__).parent
CORRECT = sorted((HERE / "correct").glob("*.rule"))
BROKEN = sorted((HERE / "broken").glob("*.rule"))
SLOW = {
    "brackets": "rule x let a = " + "(" * 100_000,
    "closed brackets": "rule x let a = " + "(" * 100_000 + "1" + ")" * 100_000,
    "square brackets": "rule x let a = " + "[" * 100_000,
    "negations": "rule x let a = " + "not " * 60_000,
    "signs": "rule x let a = " + "-" * 250_000,
    "dots": "rule x let a = " + "a." * 130_000,
    "sums": "rule x let a = " + "1+" * 130_000 + "1",
    "calls": "rule x let a = " + "a(" * 130_000,
    "quotes": "rule x\n" + '"' * 250_000,
    "digits": "rule x let a = " + "9" * 250_000,
    "dotted digits": "rule x let a = " + "9." * 130_000,
    "escapes": 'rule x let a = "' + "\\u{1}" * 50_000,
    "slashes": "rule x let a = b matches /" + "\\/" * 130_000,
    "unfinished items": "rule x\n" + "let\n" * 60_000,
    "misplaced items": "rule x let a = " + "not " * 64 + "1" + "\nsignal" * 30_000,
    "comments": "rule x\n" + "#\n" * 130_000,
    "one word": "a" * 250_000,
    "rules of one line": "rule x\n" + ("if a" + " " * 250 + "=> deny!\n") * 900,
    "promises": "rule x\n" + ("must " + "aorb or " * 30 + "\n") * 900,
    "counts in words": "rule x\n" + ("let a = number of payments by " + "a, " * 70 + "\n") * 900,
    "clauses": "rule x\n" + ("let a = count(payments over 1h " + "by a " * 40 + ")\n") * 900,
    "given names": "rule x\nlet\n" + ("a " + " " * 200 + "b = 1\n") * 1_000,
}


def bare(node: object) -> object:
    """A tree without its ids and spans."""
    if isinstance(node, syntax.Node):
        kept = [f.name for f in fields(node) if f.name not in ("id", "span", "comments")]
        return (type(node).__name__, *(bare(getattr(node, name)) for name in kept))
    return tuple(map(bare, node)) if isinstance(node, tuple) else node


def nodes(node: object) -> list[syntax.Node]:
    found: list[syntax.Node] = []
    todo = [node]
    while todo:
        match todo.pop():
            case syntax.Node() as inner:
                found.append(inner)
                todo += [getattr(inner, f.name) for f in fields(inner) if f.name != "span"]
            case tuple() as several:
                todo += several
    return found


def value(text: str) -> object:
    """The tree of an expression."""
    parsed = parse(f"rule x let it = {text}")
    assert parsed.diagnostics == ()
    assert parsed.file is not None
    (let,) = parsed.file.items
    assert isinstance(let, syntax.Let)
    return bare(let.value)


def name(text: str) -> tuple[str, str]:
    return ("Name", text)


def codes(parsed: ParsedFile) -> list[str]:
    return [diagnostic.code for diagnostic in parsed.diagnostics]


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_correct_files_parse_without_a_word(path):
    parsed = parse(path.read_text())
    assert parsed.diagnostics == ()
    assert parsed.file is not None


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_ids_are_unique_and_spans_lie_within_their_parents(path):
    text = path.read_text()
    file = parse(text).file
    everything = nodes(file)
    assert len({node.id for node in everything}) == len(everything)
    for node in everything:
        assert 0 <= node.span.start < node.span.end <= len(text)
        for inner in nodes(node):
            if not isinstance(inner, syntax.Comment):
                assert node.span.start <= inner.span.start
                assert inner.span.end <= node.span.end


def test_a_rule_is_read_with_all_its_items():
    file = parse((HERE / "correct" / "checkout.rule").read_text()).file
    assert file is not None
    assert (file.kind, file.name.text) == ("rule", "checkout")
    assert [type(item).__name__ for item in file.items] == [
        "Use",
        "ListDeclaration",
        "Let",
        "Condition",
        "Condition",
        "Condition",
        "Otherwise",
        "Test",
    ]
    assert [comment.text for comment in file.comments] == [" rules/definitions/cards.rule"]


def test_the_span_of_a_comparison_covers_its_brackets():
    text = "rule x let it = (a + 1) > 2"
    file = parse(text).file
    assert file is not None
    spans = {text[slice(*node.span)] for node in nodes(file)}
    assert {"(a + 1) > 2", "(a + 1)", "a", "1"} <= spans


def test_or_binds_looser_than_and_and_and_looser_than_not():
    a, b, c = name("a"), name("b"), name("c")
    assert value("a or not b and c") == ("Or", (a, ("And", (("Not", b), c))))


def test_chains_of_or_and_and_are_one_node_each():
    a, b, c = name("a"), name("b"), name("c")
    assert value("a or b or c") == ("Or", (a, b, c))
    assert value("(a and b) and c") == ("And", (("And", (a, b)), c))


def test_and_within_between_belongs_to_between():
    two = ("Between", name("a"), ("Number", "1"), ("Number", "2"))
    assert value("a between 1 and 2 and b") == ("And", (two, name("b")))


def test_arithmetic_binds_to_the_left_and_products_before_sums():
    one, two, three = (("Number", digit) for digit in "123")
    assert value("1 - 2 - 3") == ("Arithmetic", "-", ("Arithmetic", "-", one, two), three)
    assert value("1 + 2 * 3") == ("Arithmetic", "+", one, ("Arithmetic", "*", two, three))
    assert value("-1 - -2") == ("Arithmetic", "-", ("Negate", one), ("Negate", two))


def test_keywords_are_names_after_a_dot():
    path = value("decision.condition.by.order")
    assert path == (
        "Attribute",
        (
            "Attribute",
            ("Attribute", name("decision"), ("Identifier", "condition")),
            ("Identifier", "by"),
        ),
        ("Identifier", "order"),
    )


def test_words_that_begin_like_keywords_are_names():
    assert value("android or not_in and india") == (
        "Or",
        (name("android"), ("And", (name("not_in"), name("india")))),
    )


def test_an_aggregate_has_its_keys_its_length_and_its_filter():
    call = value('sum(payments.amount by user.id, currency over 7d where status == "x")')
    assert isinstance(call, tuple)
    _, called, arguments, by, over, where, earlier, of, half_life = call
    assert called == ("Identifier", "sum")
    assert arguments == (("Attribute", name("payments"), ("Identifier", "amount")),)
    assert by == (("Attribute", name("user"), ("Identifier", "id")), name("currency"))
    assert over == ("Duration", 7, "d")
    assert where == ("Compare", "==", name("status"), ("Text", "x"))
    assert (earlier, of, half_life) == (None, None, None)


def test_escapes_in_texts_are_resolved():
    assert value(r'"\"\\\n\t\u{e9}\u{1F600}"') == ("Text", '"\\\n\té😀')


def test_a_slash_in_a_pattern_is_written_with_a_backslash():
    regex = ("Regex", "a/b\\d\\\\", True)
    assert value(r"a matches /a\/b\d\\/i") == ("Matches", name("a"), regex)


def test_division_is_no_pattern():
    assert value("a / b / c")[0] == "Arithmetic"  # type: ignore[index]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted():
    plain = parse("rule x\n  # why\n  otherwise deny\n")
    marked = parse_bytes(b"\xef\xbb\xbfrule x\r\n  # why\r\n  otherwise deny\r\n")
    assert marked.diagnostics == ()
    assert bare(marked.file) == bare(plain.file)
    assert marked.file is not None
    assert marked.file.comments[0].text == " why"


def test_bytes_that_are_no_text_are_shown_where_they_are():
    parsed = parse_bytes("rule é ".encode() + b"\xff")
    assert codes(parsed) == ["not-utf8"]
    assert parsed.diagnostics[0].span == (7, 8)


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x85", "\ud800", "\r"])
def test_a_control_character_is_refused(character):
    assert codes(parse(f"rule x # {character} \n")) == ["control-character"]


def test_a_file_past_256_kib_is_refused():
    fits = "rule x #" + "é" * ((MAX_FILE_BYTES - 8) // 2)
    assert parse(fits).diagnostics == ()
    assert codes(parse(fits + "é")) == ["file-too-large"]
    assert codes(parse_bytes(fits.encode() + b"e")) == ["file-too-large"]


def test_the_501st_condition_and_the_501st_let_are_refused():
    conditions = "condition c when a then deny\n"
    assert parse("rule x\n" + conditions * 500).diagnostics == ()
    assert codes(parse("rule x\n" + conditions * 501)) == ["too-many-conditions"]
    assert parse("rule x\n" + "let a = 1\n" * 500).diagnostics == ()
    assert codes(parse("rule x\n" + "let a = 1\n" * 501)) == ["too-many-lets"]


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [("(", ")"), ("not ", ""), ("-", ""), ("a(", ")"), ("1 + ", ""), ("a[", "]")],
)
def test_nesting_is_taken_up_to_64_levels(prefix, suffix):
    def nested(depth: int) -> list[str]:
        return codes(parse(f"rule x let it = {prefix * depth}1{suffix * depth}"))

    assert nested(63) == []
    assert nested(65) == ["nested-too-deep"]


def test_items_without_an_error_are_kept_and_the_names_of_others_told():
    parsed = parse("rule x\nlet a = \nlet b = 1\ncondition c when a then deny stray\nlet d 1\n")
    assert codes(parsed) == ["missing-value", "unknown-item", "missing-equals"]
    assert parsed.file is not None
    assert [item.name.text for item in parsed.file.items] == ["b", "c"]
    assert parsed.lost == {"a", "d"}


def test_all_errors_of_a_file_are_found_in_one_pass():
    parsed = parse("rule x\n" + "condition c when a > then deny\n" * 7)
    assert codes(parsed) == ["missing-value"] * 7


def test_reading_stops_after_a_bounded_number_of_errors():
    parsed = parse("rule x\n" + "let\n" * 1000)
    assert codes(parsed)[-1] == "too-many-errors"
    assert len(parsed.diagnostics) == MAX_ERRORS + 1


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_a_file_made_to_be_slow_gets_a_diagnostic(text):
    parsed = parse(text[:MAX_FILE_BYTES])
    assert parsed.file is not None or parsed.diagnostics


def settled(parsed: ParsedFile, length: int) -> bool:
    """Whether a result says something, and of places that exist."""
    spans = [d.span for d in parsed.diagnostics]
    within = all(0 <= span.start <= span.end <= length for span in spans)
    return within and (parsed.file is not None or bool(parsed.diagnostics))


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_file_or_get_diagnostics(content):
    assert settled(parse_bytes(content), len(content) + 1)


WORDS = [
    *sorted(reserved_words()),
    *[
        "a",
        "b2",
        "@list",
        "1",
        "2.50",
        "24h",
        '"text"',
        "/re/i",
        "null",
        "AND",
        "é",
        "'",
        "#",
        "\n",
    ],
    *["(", ")", "[", "]", ",", ".", ":", "|", "=", "==", "!=", "<", ">=", "+", "-", "*", "/", "&&"],
]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=60), st.sampled_from([" ", "\n", ""]))
@example(["rule"], "\n")
def test_any_words_of_the_language_are_a_file_or_get_diagnostics(words, between):
    text = between.join(words)
    assert settled(parse(text), len(text))
    assert settled(parse(f"rule x {text}"), len(text) + 7)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_any_damaged_file_is_a_file_or_gets_diagnostics(data):
    text = data.draw(st.sampled_from(CORRECT + BROKEN)).read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 30, len(text))))
        text = text[:start] + data.draw(st.text(max_size=4)) + text[end:]
    assert settled(parse(text), len(text))


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_a_file_that_ends_anywhere_is_told_what_is_missing(path):
    text = path.read_text()
    vague = {
        text[max(0, end - 30) : end]
        for end in range(len(text))
        for found in parse(text[:end]).diagnostics
        if found.message == "the file ends too early"
    }
    assert vague == set()
