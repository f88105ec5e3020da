"""Recognise what authors write out of habit from other languages, and say how it is written here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.functions import COLLECTIONS, FUNCTIONS
from tollkeeper.grammar.habits_of_items import NEAR, habit_of_item, word_before
from tollkeeper.grammar.habits_of_numbers import habit_of_number
from tollkeeper.grammar.habits_of_records import habit_of_records
from tollkeeper.grammar.habits_of_rules import habit_of_rule, missing_when
from tollkeeper.grammar.habits_of_words import habit_of_words
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place

_OPERATORS: Final = {
    **dict.fromkeys(("includes", "include", "has", "contain"), "contains"),
    **dict.fromkeys(("startswith", "beginswith"), "starts with"),
    "endswith": "ends with",
    **dict.fromkeys(("regexp", "rlike", "regexmatch", "match"), "matches"),
    **dict.fromkeys(("equals", "equal", "eq"), "=="),
    **dict.fromkeys(("ne", "neq"), "!="),
    **dict.fromkeys(("gt", "exceeds"), ">"),
    **dict.fromkeys(("gte", "ge"), ">="),
    "lt": "<",
    **dict.fromkeys(("lte", "le"), "<="),
    **dict.fromkeys(("exists", "exist"), "is present"),
    **dict.fromkeys(("above", "over"), ">"),
    **dict.fromkeys(("below", "under"), "<"),
}
"""Operators of other languages, in lower case and without `_`."""
_PHRASES: Final = tuple(
    (re.compile(rf"{phrase}\b", re.IGNORECASE), operator)
    for phrase, operator in (
        (r"begins\s+with", "starts with"),
        (r"(?:greater|more|higher|larger)\s+than\s+or\s+equal\s+to", ">="),
        (r"(?:less|lower|smaller|fewer)\s+than\s+or\s+equal\s+to", "<="),
        (r"(?:greater|more|higher|larger)\s+than", ">"),
        (r"(?:less|lower|smaller|fewer)\s+than", "<"),
        (r"(?:above|over)", ">"),
        (r"(?:below|under)", "<"),
        (r"at\s+least", ">="),
        (r"at\s+most", "<="),
        (r"equal\s+to", "=="),
        (r"not\s+equal\s+to", "!="),
        (r"one\s+of", "in"),
    )
)
_FUNCTIONS: Final = {
    **dict.fromkeys(("lower", "tolower", "tolowercase", "lowercase"), "lower"),
    **dict.fromkeys(("upper", "toupper", "touppercase", "uppercase"), "upper"),
    **dict.fromkeys(("length", "len", "size"), "length"),
}
_LIKE = re.compile(r"i?like\s+(\"[^\"\\\n]*\"|'[^'\\\n]*')", re.IGNORECASE)
_STATE = re.compile(
    r"(not\s+)?(?:(null|empty|blank|nil|none|undefined)|missing|present)\b", re.IGNORECASE
)
_NULL: Final = frozenset({"null", "nil", "none", "undefined"})
_NOT_IS = re.compile(r"!\s*is\s+(missing|present)\b")
_COMPARES = re.compile(r"(?:not\s+)?in\b|between\b")
_NEGATED = re.compile(
    r"(?P<plain>contains|starts\s+with|ends\s+with|matches|between|like)\b"
    r"|does\s+not\s+(?P<verb>contain|match|start\s+with|begin\s+with|end\s+with)\b",
    re.IGNORECASE,
)
_VERBS: Final = {
    "contain": "contains",
    "match": "matches",
    "start": "starts with",
    "begin": "starts with",
    "end": "ends with",
}
_ACTION = re.compile(r'"(allow|challenge|deny)"')
_LITERAL = r"(?:\"[^\"\\\n]*\"|[0-9]+(?:\.[0-9]+)?)"
_LITERALS = re.compile(r"\(([^()\n]*)\)")
_BARE_LIST = re.compile(rf"{_LITERAL}(?:[ \t]*,[ \t]*{_LITERAL})+")
_BRACES = re.compile(r"\{([^{}\n]*)\}")
_ENDS = re.compile(r"\(([^(),\n]{1,80}),([^(),\n]{1,80})\)")
_ARGUMENTS = re.compile(r"[ \t]*\(((?:[^()\"\n]|\"[^\"\\\n]*\"){1,200})\)")
_SEVERAL = re.compile(r"\A(?:[^\",]|\"[^\"]*\")*,")
_NO_ARGUMENTS = re.compile(r"\(\s*\)")
_SEPARATED = re.compile(r"((?:[^\",;]|\"[^\"]*\")+)[,;]?")
_PATTERN_TEXT = re.compile(r"r?\"([^\"\n]*)\"|'([^'\n]*)'")
_BLOCK_COMMENT = re.compile(r"/\*([^\n]*?)\*/(?=[ \t\r]*(?:\n|\Z))")
_CALLED_METHOD = re.compile(r"(\.)?\s*([A-Za-z_]\w*)\s*(?=\()")
_ATTRIBUTE = re.compile(r"(:{1,2})([A-Za-z_]\w*):{1,2}")
_DISTINCT = re.compile(r"count\s*\(\s*(distinct)\s+\Z", re.IGNORECASE)
_TO = re.compile(r"to\b|\.\.+|…|,|&&?", re.IGNORECASE)


def habit(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    for question in (
        *(_comment, _attribute, _call_of_operator, _method, _negated, _state, _word),
        *(habit_of_rule, habit_of_number, _range, _list, _pattern, _count),
        *(habit_of_records, habit_of_words, habit_of_item, missing_when),
    ):
        if diagnostic := question(place):
            return diagnostic
    return None


def _comment(place: Place) -> Diagnostic | None:
    start = place.start
    if place.found == "//" and not place.touches:
        return say.foreign_comment(place.span, "#", is_alone=place.begins_line)
    if place.found == "-" and place.text.startswith("--", start) and not place.takes("NUMBER"):
        return say.foreign_comment(Span(start, start + 2), "#", is_alone=place.begins_line)
    start -= place.touches and place.before == "/" and place.found == "*"
    if not place.text.startswith("/*", start):
        return None
    whole = _BLOCK_COMMENT.match(place.text, start)
    if whole is None:
        return say.foreign_comment(Span(start, start + 2), None, is_alone=False)
    return say.foreign_comment(Span(*whole.span()), f"#{whole[1]}", is_alone=place.begins_line)


def _attribute(place: Place) -> Diagnostic | None:
    """`:card_bin:` and `::order_id::`."""
    found = _ATTRIBUTE.match(place.text, place.start)
    if found is None or not place.takes("NUMBER") or place.touches:
        return None
    return say.colons(Span(*found.span()), found[2], is_metadata=found[1] == "::")


def _call_of_operator(place: Place) -> Diagnostic | None:
    """`contains(a, "b")` and `AND(a, b)`."""
    operator = place.found.lower()
    if operator not in ("and", "or", "contains", "in", "matches", "between"):
        return None
    is_logic = operator in ("and", "or")
    between = "conditions" if is_logic else "values"
    if not place.takes("NUMBER") or place.text[place.span.end : place.span.end + 1] != "(":
        return None
    called = _ARGUMENTS.match(place.text, place.span.end)
    if called is None:
        return say.operator_as_call(place.span, operator, between, None)
    parts = [each[1].strip() for each in _SEPARATED.finditer(called[1])]
    correction = None
    if is_logic:
        correction = f"({f' {operator} '.join(parts)})"
    elif operator == "contains" and len(parts) == 2:
        correction = f"{parts[0]} contains {parts[1]}"
    span = Span(place.span.start, called.end())
    return say.operator_as_call(span, operator, between, correction)


def _method(place: Place) -> Diagnostic | None:
    """`user.email.lower()`, `user.email.endswith("x")` and `lower(user.email).length()`."""
    before, operand = place.previous, place.operand
    if before is None or operand is None:
        return None
    start = before.span.start if before.kind == "MEMBER" else place.start
    found = _CALLED_METHOD.match(place.text, start)
    if found is None or not (before.kind == "MEMBER" or (found[1] and before.kind == "RPAR")):
        return None
    name, opening = found[2], found.end()
    value = place.text[operand.start : start].rstrip(". ")
    empty = _NO_ARGUMENTS.match(place.text, opening)
    called = empty or _ARGUMENTS.match(place.text, opening)
    if called is None:
        return say.method(Span(found.start(2), opening + 1), name, None)
    span, given = Span(operand.start, called.end()), "" if empty else called[1]
    word = name.lower().replace("_", "")
    operator = _OPERATORS.get(word) or (name if name in ("contains", "matches") else None)
    is_one = not _SEVERAL.search(given)
    function = _FUNCTIONS.get(word) or (word if word in FUNCTIONS else None)
    if operator and given and is_one:
        return say.method(span, name, f"{value} {operator} {given}")
    if function and (is_one or function not in ("lower", "upper", "length")):
        inside = value[1:-1] if value.startswith("(") else value
        counts = function == "length" and inside in COLLECTIONS
        arguments = f"{inside}, {given}" if given else inside
        return say.method(span, name, f"{'count' if counts else function}({arguments})")
    return say.method(Span(found.start(2), opening + 1), name, None)


def _negated(place: Place) -> Diagnostic | None:
    """`a not contains "b"` and `a does not contain "b"`."""
    operand, word = place.operand, place.previous
    if operand is None or word is None:
        return None
    found = _NEGATED.match(place.text, place.start)
    if place.accepted == {"IN"}:
        whole = Span(word.span.start, place.span.end)
        if place.found in ("==", "="):
            return say.negated_operator(whole, "!=")
        if found and found["plain"]:
            between = Span(word.span.start, place.start)
            return say.negated_comparison(place.span, operand.start, between, found[0], "")
    elif found and found["verb"] and place.takes("CONTAINS"):
        operator = _VERBS[found["verb"].split()[0].lower()]
        return say.negated_comparison(
            Span(*found.span()), operand.start, Span(*found.span()), operator, operator
        )
    return None


def _state(place: Place) -> Diagnostic | None:
    """`is null`, `is not missing`, `is "a"`, `== null`, `!is missing`."""
    word = place.previous
    if word is None:
        return None
    if place.takes("MISSING") and word.text == "is":
        found = _STATE.match(place.text, place.start)
        if found is None:
            return _after_is(place, word.span)
        is_there = bool(found[1]) != found[0].lower().endswith("present")
        return _say_state(place.start, found[0], "present" if is_there else "missing")
    if place.item == "test" and word.text == "=" and place.found.lower() in (*_NULL, "missing"):
        return say.given_missing(place.span, place.found)
    if place.takes("NUMBER") and word.text in ("==", "!=") and place.found.lower() in _NULL:
        written = place.text[word.span.start : place.span.end]
        state = "is missing" if word.text == "==" else "is present"
        return _say_state(word.span.start, written, state)
    if place.takes("IS") and (negated := _NOT_IS.match(place.text, place.start)):
        state = "is present" if negated[1] == "missing" else "is missing"
        return _say_state(place.start, negated[0], state)
    return None


def _say_state(start: int, written: str, correction: str) -> Diagnostic:
    is_foreign = written.lower().endswith(tuple(_NULL))
    return say.state(Span(start, start + len(written)), correction, is_foreign=is_foreign)


def _after_is(place: Place, word: Span) -> Diagnostic | None:
    for phrase, operator in _PHRASES:
        if found := phrase.match(place.text, place.start):
            return say.foreign_phrase(Span(word.start, found.end()), operator)
    if _COMPARES.match(place.text, place.start):
        return say.needless_is(Span(word.start, place.start), place.found)
    if place.found == "not":
        return say.foreign_phrase(Span(word.start, place.span.end), "!=", "missing-state")
    if place.found[:1] == '"' or place.found[:1].isdigit() or place.found in ("true", "false"):
        return say.foreign_phrase(word, "==", "missing-state")
    if place.found in ("new", "first"):
        return say.is_new(place.span)
    if place.found.isidentifier() and place.found not in place.reserved:
        return say.is_a_name(word, place.found)
    return None


def _word(place: Place) -> Diagnostic | None:
    if place.takes("CONTAINS"):
        word = place.found.lower().replace("_", "")
        if word in _OPERATORS:
            return say.foreign_operator(place.span, place.found, _OPERATORS[word])
        if like := _LIKE.match(place.text, place.start):
            return say.foreign_like(Span(*like.span()), like[1][1:-1])
        for phrase, operator in _PHRASES:
            if found := phrase.match(place.text, place.start):
                return say.foreign_phrase(Span(*found.span()), operator)
    action = _ACTION.match(place.text, place.start)
    if action and place.takes("ALLOW"):
        return say.quoted_action(Span(*action.span()), action[1])
    if place.found == "if" and place.takes("WHEN"):
        return say.if_for_when(place.span)
    return None


def _range(place: Place) -> Diagnostic | None:
    """`between 5 to 10` and `between (5, 10)`."""
    if (
        place.takes("AND")
        and not place.takes("OR")
        and (found := _TO.match(place.text, place.start))
    ):
        return say.range_without_and(Span(*found.span()), found[0])
    bracket = place.bracket
    if place.found != "," or bracket is None or word_before(place, bracket.span.start) != "between":
        return None
    ends = _ENDS.match(place.text, bracket.span.start)
    if ends is None:
        return None
    return say.range_in_brackets(Span(*ends.span()), f"{ends[1].strip()} and {ends[2].strip()}")


def _list(place: Place) -> Diagnostic | None:
    bracket, word = place.bracket, place.previous
    if word is None:
        return None
    if (
        place.found == "{"
        and word.text == "in"
        and (braces := _BRACES.match(place.text, place.start))
    ):
        return say.other_brackets(Span(*braces.span()), braces[1])
    if place.accepted == {"COMMA", "RSQB"}:
        if place.found == ";":
            return say.semicolon_in_brackets(place.span)
        if re.match(_LITERAL, place.text[place.start : place.span.end]):
            return say.missing_comma(place.span, word.span.end)
    if word.text == "," and place.found in ("]", ")"):
        return say.trailing_comma(word.span)
    if place.found != ",":
        return None
    if bracket is None:
        whole = _BARE_LIST.match(place.text, word.span.start)
        if whole and word_before(place, word.span.start) == "in":
            return say.other_brackets(Span(*whole.span()), whole[0])
        return None
    inside = _LITERALS.match(place.text, bracket.span.start) if bracket.text == "(" else None
    if inside is None or word_before(place, bracket.span.start) != "in":
        return None
    return say.other_brackets(Span(*inside.span()), inside[1])


def _pattern(place: Place) -> Diagnostic | None:
    if place.accepted == {"REGEX"} and (text := _PATTERN_TEXT.match(place.text, place.start)):
        inside = (text[1] or text[2] or "").replace("\\\\", "\\").strip("/").replace("/", r"\/")
        return say.pattern_in_quotes(Span(*text.span()), f"/{inside}/") if inside else None
    pattern = place.previous
    if pattern is None or pattern.kind != "REGEX" or not place.touches:
        return None
    if place.found == "/":
        return say.slash_in_pattern(place.span)
    if place.found.isalpha():
        return say.flag_of_pattern(place.span, place.found)
    return None


def _count(place: Place) -> Diagnostic | None:
    """`count(distinct …)` and `count(*)`."""
    if place.bracket is None:
        return None
    start = place.bracket.span.start
    if place.found == "*" and place.before == "(" and place.takes("NUMBER"):
        return say.count_of_all(place.span)
    opening = place.text[max(0, start - NEAR) : place.start]
    if place.before.lower() != "distinct" or not (found := _DISTINCT.search(opening)):
        return None
    return say.count_of_distinct(Span(place.start - len(found[0]), place.start))
