"""What an editor is told about a text: completion, meaning, places, rename, outline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.diagnostics import Fix
from tollkeeper.grammar.fixes import apply_fixes
from tollkeeper.grammar.parser import expected_tokens, parse
from tollkeeper.grammar.services.complete import complete
from tollkeeper.grammar.services.document import Document, Neighbour, read_document
from tollkeeper.grammar.services.hover import example_of, hover, let_types
from tollkeeper.grammar.services.mentions import (
    BadNameError,
    mention_at,
    places,
    refuse_name,
    rename_edits,
)
from tollkeeper.grammar.services.outline import folds, outline, tokens
from tollkeeper.grammar.services.signature import call_at
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.tests.examples import examples

RULES = sorted((Path(__file__).parents[3] / "rules").rglob("*.rule"))
CARDS = "definitions cards\n  list stolen: string\n  let busy = amount > 5\n"
SIGN_INS = """event sign_in
  field user_id: string
  metric failures = count(events by user_id over 1h)
"""
RULE = """rule a
  use cards
  list known: string
  let large = amount > 100
  condition big "Too much"
    when large and busy and user.id in @known
    then deny
  test "it"
    given large = true
    expect deny by big
"""
Read: TypeAlias = Callable[[str], Document]


@pytest.fixture(scope="session")
def read(vocabulary: Vocabulary, known: KnownNames) -> Read:
    around = [Neighbour(file, text) for text in (CARDS, SIGN_INS) if (file := parse(text).file)]
    return lambda text: read_document(text, vocabulary, known, around)


def offered(document: Document) -> set[str]:
    return {each.text for each in complete(document, len(document.text))}


@pytest.mark.parametrize(
    ("written", "among"),
    [
        ("condition b when device.", "ip_address"),
        ("condition b when device.client.ki", "kind"),
        ("condition b when ", "amount"),
        ("condition b when ", "count"),
        ("condition b when ", "sign_in"),
        ("condition b when amount > 1 ", "then"),
        ("condition b when amount > 1 then ", "challenge"),
        ('condition b when method.card.network == "', "visa"),
        ('condition b when type in ["purchase", "', "verify"),
        ('condition b when type not in ["', "verify"),
        ('condition b when device.headers["', "User-Agent"),
        ("condition b when sign_in.", "failures"),
        ("condition b when any(transactions where transactions.", "connector"),
        ("condition b when sum(payments.", "amount"),
        ("use cards\n  condition b when ", "busy"),
        ("use cards\n  condition b when user.id in @", "@stolen"),
        ("table t: c: string\n  condition b when @t[user.id].", "c"),
        ("list l: ", "ip"),
        ("use ", "cards"),
        ("let x = count(payments by user.id ", "over"),
        ('condition b when true then deny\n  test "t" expect deny by ', "b"),
        ("", "condition"),
    ],
)
def test_what_can_stand_at_a_place_is_offered(written: str, among: str, read: Read) -> None:
    assert among in offered(read(f"rule a\n  {written}"))


def test_nothing_is_offered_in_a_comment(read: Read) -> None:
    assert not offered(read("rule a # when "))


def test_a_mistake_in_an_earlier_item_leaves_completion_at_work(read: Read) -> None:
    assert "amount" in offered(read("rule a\n  let x = = 3\n  condition b when "))


@pytest.mark.parametrize("path", RULES[::4], ids=lambda path: path.stem)
def test_each_token_of_a_shipped_file_is_among_those_expected_before_it(path: Path) -> None:
    text = path.read_text()
    for piece in parse(text).pieces[:60:3]:
        assert piece.kind in expected_tokens(text[: piece.span.start])


@pytest.mark.parametrize(
    ("at", "part"),
    [
        ("amount", "may be missing"),
        ("large and", "amount > 100"),
        ("busy", "of definitions `cards`"),
        ("known\n", "list known: string"),
        ("big\n", "Too much"),
    ],
)
def test_a_name_is_explained(at: str, part: str, read: Read) -> None:
    found = hover(read(RULE), RULE.index(at))
    assert found is not None
    assert part in found.markdown


def test_a_fence_in_a_text_stays_inside_the_code(read: Read) -> None:
    text = 'rule a\n  let x = user.id == "```"\n  condition b when x then deny\n'
    found = hover(read(text), text.index("x ="))
    assert found is not None
    assert found.markdown.startswith("````toll")


def test_a_function_is_explained_with_an_example(read: Read) -> None:
    text = "rule a\n  let x = round(amount)\n"
    found = hover(read(text), text.index("round"))
    assert found is not None
    assert "round(value, [decimals])" in found.markdown


def test_a_let_has_its_type(read: Read) -> None:
    document = read("rule a\n  let x = amount > 1\n  condition b when x then deny\n")
    assert [(let.name.text, kind) for let, kind in let_types(document)] == [("x", "boolean")]


def test_a_let_has_its_own_type_beside_one_of_an_event_type_with_its_name(read: Read) -> None:
    when = "failed > 1 and events.user_authentication.failures[user.id] > 1"
    document = read(
        f"rule a\n  let failed = length(user.id)\n  condition b when {when} then deny\n"
    )
    assert [kind for _, kind in let_types(document)] == ["number from 0"]


def test_a_name_is_found_wherever_it_stands(read: Read) -> None:
    document = read(RULE)
    mention = mention_at(document, RULE.index("large and"))
    assert mention is not None
    found = places(mention.symbol, document)
    assert [each.declares for each in found] == [True, False, False]
    assert {RULE[each.span.start : each.span.end] for each in found} == {"large"}


def test_a_name_of_definitions_belongs_to_them(read: Read) -> None:
    mention = mention_at(read(RULE), RULE.index("busy"))
    assert mention is not None
    assert mention.symbol.owner == ("definitions", "cards")


def test_a_field_of_a_transaction_is_not_a_let_of_its_name(read: Read) -> None:
    text = "rule a\n  let duration = 3\n  let x = count(transactions where duration > 2)\n"
    mention = mention_at(read(text), text.index("duration ="))
    assert mention is not None
    assert len(places(mention.symbol, read(text))) == 1


def test_a_renamed_let_means_the_same(read: Read) -> None:
    document = read(RULE)
    mention = mention_at(document, RULE.index("large"))
    assert mention is not None
    renamed = apply_fixes(RULE, [Fix("", rename_edits(mention.symbol, "huge", document))])
    assert renamed == RULE.replace("large", "huge")


def test_a_metric_is_renamed_where_a_monitor_reads_it(read: Read) -> None:
    text = (
        "event login\n  field ip: string\n  metric tries = count(events by ip over 1h)\n"
        "  monitor many when tries > 5\n"
    )
    document = read(text)
    mention = mention_at(document, text.index("tries > 5"))
    assert mention is not None
    renamed = apply_fixes(text, [Fix("", rename_edits(mention.symbol, "visits", document))])
    assert renamed == text.replace("tries", "visits")


@pytest.mark.parametrize("name", ["when", "3x", "amount", "busy", "big", "a b", "x" * 65, ""])
def test_a_name_that_would_clash_is_refused(name: str, read: Read) -> None:
    document = read(RULE)
    mention = mention_at(document, RULE.index("large"))
    assert mention is not None
    with pytest.raises(BadNameError):
        refuse_name(mention.symbol, name, [document])


def test_a_rename_waits_for_syntax_errors_to_be_mended(read: Read) -> None:
    text = "rule a\n  let x = 3\n  let y = x +\n"
    document = read(text)
    mention = mention_at(document, text.index("x ="))
    assert mention is not None
    with pytest.raises(BadNameError, match="syntax error"):
        refuse_name(mention.symbol, "z", [document])


def test_the_outline_names_every_item(read: Read) -> None:
    found = [(each.keyword, each.name) for each in outline(read(RULE))]
    assert found == [
        ("use", "cards"),
        ("list", "known"),
        ("let", "large"),
        ("condition", "big"),
        ("test", "it"),
    ]
    assert len(folds(read(RULE))) == 2


def test_tokens_have_their_kinds(read: Read) -> None:
    text = 'rule a # x\n  let x = round(amount) > 3 and user.id matches /a/ or type == "b"'
    kinds = {text[each.span.start : each.span.end]: each.kind for each in tokens(read(text))}
    assert kinds["rule"] == "keyword"
    assert kinds["# x"] == "comment"
    assert kinds["round"] == "function"
    assert kinds["x"] == "variable"
    assert kinds["amount"] == "property"
    assert kinds["/a/"] == "regexp"


def test_the_argument_at_hand_is_told() -> None:
    text = "rule a\n  let x = ip_network(min(1, 2), "
    found = call_at(text, len(text))
    assert found is not None
    assert (found.callables[0].name, found.argument) == ("ip_network", 1)
    assert call_at("rule a\n  let x = (", 18) is None


@given(text=st.text(st.sampled_from('rule a\nlet=count(payments.@"[]#é😀\\/'), max_size=80))
@settings(max_examples=examples(60), deadline=None)
def test_no_text_and_no_place_breaks_a_service(text: str, read: Read) -> None:
    document = read(f"rule a\n  {text}")
    for offset in range(0, len(document.text) + 1, 7):
        complete(document, offset)
        hover(document, offset)
        mention_at(document, offset)
        call_at(document.text, offset)
    outline(document)
    tokens(document)


def test_a_text_of_brackets_is_read_to_its_end(read: Read) -> None:
    text = "rule a\n  let x = " + "(" * 200_000
    document = read(text)
    assert complete(document, len(text)) == ()
    assert call_at(text, len(text)) is None


def test_the_example_of_each_field_is_a_test_of_it(read: Read, vocabulary: Vocabulary) -> None:
    for name, field in vocabulary.payment.items():
        example = example_of(name, field.type)
        assert example is not None, name
        found = read(f"rule a\n  condition c when {example} then deny\n").diagnostics
        assert not [each for each in found if each.severity == "error"], (example, found)


def test_a_comment_of_quotes_is_read_to_its_end(read: Read) -> None:
    text = 'rule a\n# "' + '\\"' * 120_000
    assert complete(read(text), len(text)) == ()
