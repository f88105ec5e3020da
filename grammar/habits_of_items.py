"""Habits of other languages in items: names, colons, clauses and tests."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place
    from tollkeeper.grammar.builder import Piece

_TEXT = re.compile(r'"([^"\\\n]{1,60})"')
_WORDS = re.compile(r"[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*)*")
NEAR: Final = 40
"""How many characters back a word is looked for."""
_LAST_WORD = re.compile(r"\b([a-z]+)\s*\Z")
_LAST = re.compile(r"(?:the\s+)?(?:last|past)\s+(?=[0-9])")
_ENDING = re.compile(r"\.rule\b")
_AND = re.compile(r"\s+\S+\s+")
_AFTER_NAME = re.compile(r"[ \t]*(?:[\r\n\"#:]|\Z|=(?!=)|when\b)")
_CLAUSES: Final = (
    (re.compile(r"(?:group\s+by|grouped\s+by|per|for\s+each|for)\b", re.IGNORECASE), "by"),
    (
        re.compile(
            r"(?:within|during|in|for|over)?\s*(?:the\s+)?(?:last|past|previous|within|during)\b",
            re.IGNORECASE,
        ),
        "over",
    ),
    (re.compile(r"(?:having|filter|if|with|when)\b", re.IGNORECASE), "where"),
    (re.compile(r"each\b", re.IGNORECASE), "every"),
    (re.compile(r"(?:increasing|ascending)\b", re.IGNORECASE), "rising"),
    (re.compile(r"(?:decreasing|descending)\b", re.IGNORECASE), "falling"),
    (re.compile(r"(?:otherwise|default)\b", re.IGNORECASE), "else"),
    (re.compile(r"(?:add|adding|plus|points?|weight|weighs)\b", re.IGNORECASE), "adds"),
    (re.compile(r"curve\b", re.IGNORECASE), "curves"),
    (re.compile(r"(?:where|whenever|given|once)\b", re.IGNORECASE), "when"),
)
"""Words for clauses, which are taken as meant where the clause could follow."""
_WORDS_OF_ITEMS: Final = {
    **dict.fromkeys(("var", "const", "set", "define", "variable"), "let"),
    **dict.fromkeys(("import", "include", "using", "require"), "use"),
    **dict.fromkeys(("else", "default", "finally"), "otherwise"),
    **dict.fromkeys(("alert", "alarm"), "monitor"),
    **dict.fromkeys(("assert", "ensure", "invariant", "promise"), "must"),
    **dict.fromkeys(("feature", "factor"), "signal"),
    **dict.fromkeys(("blocklist", "allowlist", "whitelist", "blacklist"), "list"),
    **dict.fromkeys(("property", "attribute", "column"), "field"),
    **dict.fromkeys(("example", "scenario"), "test"),
}
_NAMED_WITH_MARK: Final = ("let", "metric", "list", "table", "field")
_ASSIGNED = re.compile(r"[A-Za-z_@][\w.\[\]\"@-]*\s*=(?!=)")
_FILE = re.compile(r"[\w/-]+\.json\b")
_CHOICES = re.compile(r"\(\s*\"[^\"\\\n]*\"(?:\s*,\s*\"[^\"\\\n]*\")*\s*\)")
_LESS = re.compile(r"(?:subtracts?|minus|deducts?|removes?)\s+(?=([0-9]+(?:\.[0-9]+)?))")
_POINTS = re.compile(r"(?:points?|pts?)\b")
_EXPECTS: Final = ("then", "should", "expects", "returns", "gives")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*[ \t]*=(?!=)")
_DECLARES = re.compile(r"[A-Za-z_]\w*[ \t]*:[ \t]*(?:\"|[a-z]+\b)")
_WISH = re.compile(
    r"(?:optional|nullable|not[ \t]null|not[ \t]required|mandatory|null)\b|[?!]", re.IGNORECASE
)
_AND_PATH = re.compile(r"\s+(?:and|AND|&&)\s+[A-Za-z_@][\w.\[\]\"@]*\s*\Z")


def habit_of_item(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    for question in (_name, _colon, _entries, _clause, _signal, _punctuation, _test, _item):
        if diagnostic := question(place):
            return diagnostic
    return None


def word_before(place: Place, end: int) -> str | None:
    """The word that ends, with some blanks after it, where a span begins."""
    found = _LAST_WORD.search(place.text[max(0, end - NEAR) : end])
    return found[1] if found else None


def _name(place: Place) -> Diagnostic | None:
    """A name in quotes, or of several words."""
    previous = place.previous
    if previous is None or place.begins_line:
        return None
    if place.accepted == {"NAME"} and (text := _TEXT.match(place.text, place.start)):
        title = None if previous.text == "use" else text[0]
        return say.quoted_name(Span(*text.span()), _name_from(place, text[1]), title)
    is_declared = previous.kind == "NAME" and place.takes("STRING", "EQUAL") and not place.bracket
    start = previous.span.start
    opener = word_before(place, start)
    if not is_declared or opener not in place.reserved:
        return None
    run = _WORDS.match(place.text, place.start)
    if opener in ("given", "expect", "by") or run is None:
        return None
    more = list(takewhile(lambda word: _can_be_named(place, word[0]), re.finditer(r"\w+", run[0])))
    end = place.start + (more[-1].end() if more else 0)
    if not more or not _AFTER_NAME.match(place.text, end):
        return None
    if place.item == "signal" and place.takes("ADDS") and _means(place, "adds", "curves"):
        return None
    made = "_".join([previous.text, *(word[0] for word in more)])
    return say.name_of_words(Span(previous.span.start, end), made)


def _can_be_named(place: Place, word: str) -> bool:
    return word not in place.reserved or (place.item is None and word == place.kind)


def _name_from(place: Place, text: str) -> str | None:
    """The name that is made of a text's words, None if they make none."""
    made = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return made if made and not made[0].isdigit() and made not in place.reserved else None


def _colon(place: Place) -> Diagnostic | None:
    """`when: …`, `baseline = …`, `let a: …`."""
    previous = place.previous
    if place.found not in (":", "=") or previous is None:
        return None
    if place.found == ":" and place.takes("EQUAL"):
        return say.colon_for_equals(place.span)
    if place.found == ":" and place.takes("WHEN") and not place.takes("NUMBER"):
        is_followed = place.text[place.span.end : place.span.end + NEAR].lstrip().startswith("when")
        return say.colon_for_when(place.span, is_followed=is_followed)
    is_word = previous.text in place.reserved and previous.kind == previous.text.upper()
    is_nameless = place.accepted == {"NAME"} and previous.text in _NAMED_WITH_MARK
    if is_word and not is_nameless:
        return say.needless_mark(place.span, place.found, previous.text)
    if place.found == "=" and place.takes("COLON") and place.bracket and place.bracket.text == "{":
        return say.equals_for_colon(place.span)
    if place.found == "=" and place.takes("COLON") and place.item == "list":
        return say.list_with_entries(place.span, previous.text)
    return None


def _entries(place: Place) -> Diagnostic | None:
    """`list blocked: ["a"]`, `field a string`, `field a: enum("x")` and `let a be 5`."""
    previous = place.previous
    if previous is None:
        return None
    if place.found == "[" and place.item == "list" and previous.text == ":":
        return say.list_with_entries(place.span, place.name.text if place.name else "name")
    is_typed = place.takes("COLON") and place.item in ("field", "list")
    if is_typed and place.stray and place.found.isidentifier():
        return say.type_without_colon(place.span, previous.span.end)
    choices = _CHOICES.match(place.text, place.start, place.start + 5 * NEAR)
    if choices and place.item == "field" and previous.kind == "NAME":
        span = Span(previous.span.start, choices.end())
        return say.choices_in_brackets(
            span, " | ".join(each[0] for each in _TEXT.finditer(choices[0]))
        )
    if place.takes("EQUAL") and place.item in ("let", "metric", "test") and not place.begins_line:
        if place.found in ("be", "is", "as", "to", "equals", "are"):
            return say.word_for_equals(place.span)
        if place.item != "test" and place.found[:1].isalnum() and place.found not in place.reserved:
            return say.missing_sign_equals(place.span)
        if place.item == "test" and place.found[:1].isdigit():
            return say.missing_sign_equals(place.span)
    return None


def _means(place: Place, *clauses: str) -> bool:
    return any(
        clause in clauses and words.match(place.text, place.start) for words, clause in _CLAUSES
    )


def _clause(place: Place) -> Diagnostic | None:
    for words, clause in _CLAUSES:
        found = words.match(place.text, place.start)
        if found and place.takes(clause.upper()):
            needs_bracket = clause in ("over", "where") or place.item != "monitor"
            if clause in ("by", "over", "where") and needs_bracket and place.bracket is None:
                continue
            return say.foreign_clause(Span(*found.span()), found[0], clause)
    if place.accepted == {"DURATION"} and (needless := _LAST.match(place.text, place.start)):
        return say.needless_words(Span(*needless.span()))
    in_steps = place.bracket is not None and place.bracket.text == "{"
    if in_steps and place.takes("COMPARISON") and place.found[:1].isdigit():
        return say.bound_without_sign(place.span, place.found)
    if place.found == "then" and place.before == "otherwise":
        return say.needless_mark(place.span, "then", "otherwise")
    if place.item == "label" and place.takes("OF") and place.found in ("when", "for", "if"):
        return say.label_of_what(place.span)
    if place.found == "required" and place.before == ":":
        return say.required_first(place.span)
    return None


def _signal(place: Place) -> Diagnostic | None:
    """How much a signal adds: `0.5`, `+0.5`, `subtracts 0.5` and `adds 2 points`."""
    previous = place.previous
    if place.item != "signal" or previous is None or place.begins_line:
        return None
    unit = _POINTS.match(place.text, place.start)
    if unit and previous.kind == "NUMBER":
        return say.needless_unit(Span(*unit.span()), previous.span.end)
    if not place.takes("ADDS"):
        return None
    if place.found[:1].isdigit() or place.found == "-":
        return say.amount_without_adds(place.span)
    if place.found == "+":
        return say.plus_for_adds(place.span)
    if place.found == "when":
        return say.when_before_adds(place.span)
    less = _LESS.match(place.text, place.start)
    return say.amount_taken_off(Span(*less.span()), less[1]) if less else None


def _punctuation(place: Place) -> Diagnostic | None:
    """Semicolons, braces and commas that belong to no construct here."""
    bracket = place.bracket
    if place.found == ";" and bracket is not None and place.takes("COMMA"):
        return say.semicolon_in_brackets(place.span)
    if place.found == ";" and bracket is None:
        return say.needless_end(place.span)
    if place.found in ("{", "}") and bracket is None:
        return say.needless_brace(place.span, place.found)
    if place.found == "," and place.item == "field" and place.takes("REQUIRED", "VBAR"):
        following = place.text[place.span.end :].lstrip()
        return say.comma_in_field(place.span, is_choice=following.startswith('"'))
    return None


def _test(place: Place) -> Diagnostic | None:
    if place.item != "test" or place.previous is None:
        return None
    is_file = place.previous.kind == "STRING"
    if place.found == "," and is_file and place.takes("GIVEN"):
        is_repeated = place.text[place.span.end :].lstrip().startswith("given")
        return say.given_again(place.span, "" if is_repeated else " given")
    if place.found in ("when", "with", "if") and is_file and place.takes("GIVEN"):
        return say.word_of_test(place.span, place.found, "given")
    if is_file and place.takes("GIVEN") and _ASSIGNED.match(place.text, place.start):
        return say.given_without_word(place.start)
    if place.found in _EXPECTS and place.takes("EXPECT"):
        return say.word_of_test(place.span, place.found, "expect")
    if place.found == "=" and place.takes("OR"):
        joined = _AND_PATH.search(place.text, max(0, place.start - 2 * NEAR), place.start)
        if joined and (word := _AND.match(place.text, joined.start())):
            return say.given_with_and(Span(*word.span()))
    is_another = place.found not in place.reserved and _ASSIGNED.match(place.text, place.start)
    if is_another and not place.begins_line and place.takes("EXPECT", "COMMA"):
        return say.given_without_comma(place.span, place.previous.span.end)
    return _word_of_test(place)


def _word_of_test(place: Place) -> Diagnostic | None:
    """`test small given …`, `expect == deny`, `given payment p.json`, `deny because c`."""
    if place.before == "test" and place.stray and place.found.isidentifier():
        return say.title_without_quotes(place.span, place.found)
    if place.before == "expect" and place.found in ("==", "=", ":"):
        return say.needless_mark(place.span, place.found, "expect")
    file = _FILE.match(place.text, place.start, place.start + NEAR)
    if file and place.before in ("payment", "history"):
        return say.file_without_quotes(Span(*file.span()), file[0])
    if place.before in ("allow", "challenge", "deny") and place.found in ("because", "from", "via"):
        return say.word_for_by(place.span, place.found)
    if place.before == "alert" and place.accepted == {"NAME"}:
        return say.alert_without_name(place.gap)
    if place.before == "not" and place.found in ("allow", "challenge", "deny"):
        return say.expects_not(place.span)
    if place.found == "(" and place.previous and place.takes("EQUAL"):
        return say.given_call(Span(place.previous.span.start, place.span.end))
    return None


def _item(place: Place) -> Diagnostic | None:
    """Where an item could begin, and right after one."""
    if not place.takes("LET") or place.previous is None:
        return None
    if place.begins_line:
        return _first_word(place)
    if place.found == "when" and place.item is None and place.kind == "rule":
        return say.nameless_condition(place.span)
    if place.found == ":" and place.item is None and place.touches:
        return say.needless_mark(place.span, ":", place.before)
    if place.item == "field":
        return _after_field(place, place.previous)
    if place.found == "then" and place.item == "signal":
        return say.action_of_signal(place.span)
    if place.found == "then" and place.item == "monitor":
        return say.action_of_monitor(place.span)
    if place.found == "by" and place.item == "monitor":
        return say.by_before_every(place.span)
    if place.found == "or" and place.item == "must":
        return say.actions_with_or(Span(place.previous.span.end, place.span.end))
    if place.found == "," and place.item == "use":
        return say.one_use_each(place.span)
    if place.item == "use" and (ending := _ENDING.match(place.text, place.start)):
        return say.ending_of_file(Span(*ending.span()))
    return None


def _first_word(place: Place) -> Diagnostic | None:
    """A line whose first word begins no item, or not here."""
    word = place.found.lower()
    item = _WORDS_OF_ITEMS.get(word)
    if item is not None and place.takes(item.upper()):
        return say.foreign_item(place.span, place.found, item)
    if word == "when":
        return say.nameless_condition(place.span)
    if word == "if" and place.kind == "scorecard":
        return say.signal_in_words(place.span)
    if not place.found.isidentifier() or place.found in place.reserved:
        return None
    if place.takes("FIELD") and _DECLARES.match(place.text, place.start):
        return say.item_without_word(place.span, "field")
    if _ASSIGNS.match(place.text, place.start):
        return say.item_without_word(place.span, "let")
    return None


def _after_field(place: Place, previous: Piece) -> Diagnostic | None:
    """`"a" or "b"`, `optional` and `not null`."""
    if place.found == "or" and previous.kind == "STRING":
        return say.or_in_field(place.span)
    wish = _WISH.match(place.text, place.start)
    if wish is None:
        return None
    is_required = wish[0].lower().startswith(("not null", "mandatory", "!"))
    return say.wish_of_field(Span(*wish.span()), touches=place.touches, is_required=is_required)
