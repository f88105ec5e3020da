"""Habits of plain English and of other languages within an expression: before a value, and after one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.habits_of_items import NEAR
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place
    from tollkeeper.grammar.builder import Piece

_NEEDLESS: Final = frozenset({"either", "both"})
_JOINED: Final = {
    **dict.fromkeys(("but", "plus", "also", "additionally", "while"), "and"),
    "unless": "and not",
    "without": "and not",
}
_BEGINS_COMPARISON: Final = frozenset(
    {"contains", "starts", "ends", "matches", "between", "in", "is"}
)
_COMPARED = re.compile(
    r"([A-Za-z_][\w.]*(?:\[\"[^\"\n]*\"\])?)\s*"
    r"(?:[<>=!]=|[<>]|\b(?:contains|starts\s+with|ends\s+with|not\s+in|in)\b)"
    r"\s*(?:\"[^\"\n]*\"|[\w.]+|\[[^\[\]\n]*\]|@\w+)\s+(?:and|or)\s*\Z"
)
_MIDDLE = re.compile(r"(?:[<>]=?)\s*([A-Za-z_][\w.]*)\s*\Z")
_ADDRESS = re.compile(r"[\w.+-]*@[\w-]+(?:\.[\w-]+)+")
_IN_RANGE = re.compile(r"\bin\s+([0-9]+(?:\.[0-9]+)?)\s*(?:\.\.+|to\b)\s*([0-9]+(?:\.[0-9]+)?)\b")
_FROM_TO = re.compile(
    r"(?:from|ranging\s+from)\s+([0-9]+(?:\.[0-9]+)?)\s*(?:to|-|until)\s*([0-9]+(?:\.[0-9]+)?)\b"
)
_DASHED_RANGE = re.compile(r"\bbetween\s+([0-9]+(?:\.[0-9]+)?)\s*-\s*([0-9]+(?:\.[0-9]+)?)\s*\Z")
_ARITHMETIC: Final = {
    **dict.fromkeys(("%", "mod"), "write `x / 10 == round(x / 10)` to ask for a multiple of 10"),
    **dict.fromkeys(("^", "**"), "multiply, as in `x * x`"),
    "?": "write a `condition` for each case",
}
_ENTRY = re.compile(r"->>?\s*['\"](\w{1,64})['\"]")
_JOINED_BY_MARK = re.compile(r"[,;][ \t]*([A-Za-z_(\"])|,[ \t]+([0-9])")
_FAR_BACK: Final = 200
_ASKING: Final = ("condition", "must", "monitor", "signal")
_CALLED_LIST = re.compile(r"list\s+([A-Za-z_]\w*)")


def habit_of_words(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    previous = place.previous
    if previous is None:
        return say.not_a_rule_file(place.span) if place.found in ("{", "[", "<") else None
    if place.takes("NUMBER"):
        return _before_value(place, previous)
    if place.takes("AND") and not place.takes("OR"):
        return _range_with_dash(place)
    is_after_value = place.takes("OR", "THEN", "NEVER", "ADDS", "RPAR") and not place.begins_line
    return _after_value(place, previous) if is_after_value else None


def _range_with_dash(place: Place) -> Diagnostic | None:
    """`between 100 - 500`, which was read as one number."""
    ends = _DASHED_RANGE.search(place.text, max(0, place.start - NEAR), place.start)
    if ends is None:
        return None
    return say.range_with_dash(Span(ends.start(1), ends.end(2)), ends[1], ends[2])


def _before_value(place: Place, previous: Piece) -> Diagnostic | None:
    """`and < 500`, `or contains "b"`, `in list blocked`, `metadata->'sku'` and `x ** 2`."""
    found = place.found
    if found == "*" and previous.text == "*" and place.touches:
        span = Span(previous.span.start, place.span.end)
        return say.no_such_operator(span, "**", _ARITHMETIC["**"])
    if (
        previous.text == "-"
        and place.touches
        and (entry := _near(_ENTRY, place, previous.span.start))
    ):
        return say.entry_with_arrow(Span(*entry.span()), entry[1])
    if (
        found == "list"
        and previous.text == "in"
        and (name := _near(_CALLED_LIST, place, place.start))
    ):
        return say.list_in_words(Span(*name.span()), name[1])
    if previous.text not in ("and", "or"):
        return None
    if found == previous.text:
        return say.said_twice(Span(previous.span.end, place.span.end), found)
    if found in _BEGINS_COMPARISON or found in ("<", "<=", ">", ">=", "==", "!="):
        low = max(0, place.start - _FAR_BACK)
        subject = _COMPARED.search(place.text, low, place.start)
        return say.subject_again(place.span, subject[1] if subject else None)
    return None


def _after_value(place: Place, previous: Piece) -> Diagnostic | None:
    """`x@y.com`, `a < b < c`, `from 1 to 5`, `5 in 1..9`, `either`, `but`, `%` and commas."""
    found, low = place.found, max(0, place.start - NEAR)
    if previous.kind == "NAME" and previous.text in _NEEDLESS and place.stray:
        return say.needless_word(Span(previous.span.start, place.start), previous.text)
    if found[:1] == "@" and place.touches and (text := _near(_ADDRESS, place, previous.span.start)):
        return say.address_without_quotes(Span(*text.span()), text[0])
    if found in ("<", "<=", ">", ">=") and (middle := _MIDDLE.search(place.text, low, place.start)):
        return say.comparison_goes_on(place.span, found, middle[1])
    if found == "over" and place.bracket is None and previous.kind in ("NAME", "MEMBER"):
        return say.foreign_phrase(place.span, ">")
    if found == "from" and (ends := _near(_FROM_TO, place, place.start)):
        return say.foreign_range(Span(*ends.span()), f"between {ends[1]} and {ends[2]}")
    ends = _IN_RANGE.search(place.text, low, place.start + NEAR)
    if previous.kind == "NUMBER" and ends and ends.start() < place.start < ends.end():
        return say.foreign_range(Span(*ends.span()), f"between {ends[1]} and {ends[2]}")
    if found in _ARITHMETIC:
        return say.no_such_operator(place.span, found, _ARITHMETIC[found])
    if found.lower() in _JOINED:
        return say.word_for_and(place.span, found, _JOINED[found.lower()])
    joined = _near(_JOINED_BY_MARK, place, place.start)
    if joined and place.bracket is None and place.item in _ASKING:
        is_text = previous.kind == "STRING" and joined[1] == '"'
        word = "or" if is_text else "and"
        return say.mark_for_and(place.span, found, word, f"{' ' * place.touches}{word}")
    return None


def _near(pattern: re.Pattern[str], place: Place, start: int) -> re.Match[str] | None:
    return pattern.match(place.text, start, start + 2 * NEAR)
