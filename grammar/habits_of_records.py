"""Habits of other languages, and of plain English, in what is counted and summed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.functions import AGGREGATES, COLLECTIONS, FUNCTIONS
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place

_CLAUSES: Final = ("by", "over", "where")
_INSIDE = re.compile(r"\(((?:[^()\"\n]|\"[^\"\\\n]*\")*)\)")
_CLAUSE = re.compile(r"\"[^\"\n]*\"|\.\w+|\b(by|over|where|half|of)\b")
_PATH = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?![\w.])"
_LENGTH = r"[0-9]+[ \t]*[A-Za-z]+"
_SPOKEN = re.compile(
    rf"(?P<read>(?:payments|transactions|events)(?:\.\w+)*)\s+(?:by|per|for)\s+(?P<by>{_PATH}(?:,\s*{_PATH})*)"
    rf"\s+(?:over|in|within|during)\s+(?:the\s+)?(?:last\s+|past\s+)?(?P<over>{_LENGTH})\b"
)
_NUMBER_OF = re.compile(r"(?:number\s+of|count\s+of|how\s+many)\s+")
_MORE_THAN = re.compile(r"(?P<sign>more|greater|fewer|less)\s+than\s+(?P<number>[0-9]+)\s+")
_AT_THE_END = re.compile(
    rf"(?:by\s+{_PATH}(?:\s*,\s*{_PATH})*)?\s*(?:over\s+{_LENGTH}\b)?(?!\s*(?:by|over|where)\b)"
)
_IN_THE_LAST = re.compile(r"\b(?:in|within|during)\s+(?:the\s+)?(?:(?:last|past|previous)\s+)?\Z")
_LAST = re.compile(r"(?:last|past|previous)\s+(?=[0-9])")
_RECORDS = re.compile(r"\b(?:payments|transactions|events)(?:\.\w+)*\s*\Z")
_A_LENGTH = re.compile(_LENGTH)
_OPERAND = re.compile(_PATH)
_STATUSES: Final = {
    **dict.fromkeys(("declined", "refused", "rejected"), "declined"),
    **dict.fromkeys(("succeeded", "successful", "approved"), "succeeded"),
    "failed": "failed",
    "blocked": "blocked",
    "initiated": "initiated",
    **dict.fromkeys(("canceled", "cancelled"), "canceled"),
}
_KNOWN_STATUSES: Final = {
    "payments": frozenset({"declined", "succeeded", "failed", "blocked", "initiated"}),
    "transactions": frozenset({"declined", "succeeded", "failed", "canceled"}),
}
_NEAR: Final = 60
"""How many characters back a phrase is looked for."""
_FAR: Final = 300
"""How many characters on a phrase is looked for."""


def habit_of_records(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    for question in (
        _described,
        _separated,
        _in_the_last,
        _asked,
        _in_order,
        _outside,
        _unbracketed,
    ):
        if diagnostic := question(place):
            return diagnostic
    return None


def _described(place: Place) -> Diagnostic | None:
    """`count(declined payments …)` and `count(payments declined …)`."""
    previous, bracket = place.previous, place.bracket
    if previous is None or previous.kind != "NAME" or bracket is None or bracket.text != "(":
        return None
    is_before = place.found in COLLECTIONS
    if is_before == (previous.text in COLLECTIONS) or not place.found[:1].isalpha():
        return None
    if not is_before and place.found.lower() not in _STATUSES:
        return None
    word, records = (previous.text, place.found) if is_before else (place.found, previous.text)
    if is_before and word in ("previous", "prior", "past"):
        return say.earlier_records(previous.span, word)
    needless = (
        Span(previous.span.start, place.start)
        if is_before
        else Span(previous.span.end, place.span.end)
    )
    status = _STATUSES.get(word.lower())
    inside = _ahead(_INSIDE, place, bracket.span.start)
    if status not in _KNOWN_STATUSES.get(records, ()) or inside is None or "where" in inside[1]:
        return say.described_records(place.span if not is_before else previous.span, word, records)
    return say.records_of_status(
        place.span if not is_before else previous.span, needless, inside.end() - 1, status or ""
    )


def _separated(place: Place) -> Diagnostic | None:
    """`by user.id, over 1h` and `by user.id and over 1h`."""
    previous = place.previous
    if previous is None or place.bracket is None or place.found not in _CLAUSES:
        return None
    if previous.text not in (",", "and"):
        return None
    start = previous.span.start
    while place.text[start - 1].isspace():
        start -= 1
    return say.clauses_apart(previous.span, Span(start, place.start), previous.text, place.found)


def _in_the_last(place: Place) -> Diagnostic | None:
    """`by user.id in the last 1h`: the words before the length were read as a value."""
    previous = place.previous
    if previous is None or place.bracket is None or previous.kind != "NAME":
        return None
    last = _ahead(_LAST, place, place.start)
    end = last.end() if last else place.start
    if not _ahead(_A_LENGTH, place, end):
        return None
    low = max(0, place.start - _NEAR)
    words = _IN_THE_LAST.search(place.text[low : place.start])
    if words is None:
        return None
    return say.words_for_over(Span(low + words.start(), end))


def _asked(place: Place) -> Diagnostic | None:
    """`over 1h and status == "declined"`, `over 1h, status == …` and `over 1h status == …`."""
    previous, bracket = place.previous, place.bracket
    if previous is None or bracket is None or bracket.text != "(" or not place.takes("WHERE"):
        return None
    if previous.kind != "DURATION" or place.begins_line:
        return None
    if place.found in (",", "and", "&&", "&"):
        return say.asked_without_where(place.span, replaced=True, touches=place.touches)
    begins = place.found[:1].isalpha() and place.found not in place.reserved - {"not"}
    return say.asked_without_where(place.span, replaced=False, touches=False) if begins else None


def _in_order(place: Place) -> Diagnostic | None:
    """`count(payments over 1h by user.id)`."""
    if place.bracket is None or place.found not in _CLAUSES or not place.takes("RPAR"):
        return None
    inside = _ahead(_INSIDE, place, place.bracket.span.start)
    if inside is None:
        return None
    marks = [each for each in _CLAUSE.finditer(inside[1]) if each[1]]
    if sorted(each[1] for each in marks) != sorted({each[1] for each in marks} & set(_CLAUSES)):
        return None
    ends = [*(each.start() for each in marks[1:]), len(inside[1])]
    parts = {
        each[1]: inside[1][each.start() : end].strip()
        for each, end in zip(marks, ends, strict=True)
    }
    head = inside[1][: marks[0].start()].strip()
    correction = " ".join([head, *(parts[each] for each in _CLAUSES if each in parts)])
    return say.clauses_in_order(place.span, Span(*inside.span(1)), correction)


def _outside(place: Place) -> Diagnostic | None:
    """`count(payments) over 1h`."""
    previous, operand = place.previous, place.operand
    if previous is None or operand is None or previous.kind != "RPAR" or place.bracket:
        return None
    called = _ahead(_OPERAND, place, operand.start)
    if place.found not in _CLAUSES or called is None or called[0] not in AGGREGATES:
        return None
    clauses = _ahead(_AT_THE_END, place, place.start)
    end = clauses.end() if clauses and clauses.end() > place.start else None
    return say.clauses_outside(place.span, previous.span, end)


def _unbracketed(place: Place) -> Diagnostic | None:
    """`count payments by user.id over 1h`, `lower user.email`, `payments by user.id over 1h > 3`."""
    previous = place.previous
    if previous is None or place.begins_line or place.takes("NUMBER"):
        return None
    start = previous.span.start
    if previous.kind == "NAME" and (found := _ahead(_NUMBER_OF, place, start)):
        spoken = _ahead(_SPOKEN, place, found.end())
        return say.spoken_count(Span(start, found.end()), *_spoken(start, spoken, "count", ""))
    if previous.kind == "NAME" and (found := _ahead(_MORE_THAN, place, start)):
        spoken = _ahead(_SPOKEN, place, found.end())
        sign = ">" if found["sign"] in ("more", "greater") else "<"
        after = f" {sign} {found['number']}"
        return say.spoken_count(Span(start, found.end()), *_spoken(start, spoken, "count", after))
    if previous.kind == "NAME" and previous.text in AGGREGATES and place.found in COLLECTIONS:
        spoken = _ahead(_SPOKEN, place, place.start)
        return say.spoken_count(previous.span, *_spoken(start, spoken, previous.text, ""))
    if previous.kind == "NAME" and previous.text in FUNCTIONS and place.found.isidentifier():
        value = _ahead(_OPERAND, place, place.start)
        if value and value[0] not in place.reserved:
            return say.unbracketed_call(Span(start, value.end()), f"{previous.text}({value[0]})")
    if place.found not in ("by", "over", "per") or place.bracket is not None:
        return None
    low = max(0, place.start - _NEAR)
    if records := _RECORDS.search(place.text[low : place.start]):
        start = low + records.start()
        spoken = _ahead(_SPOKEN, place, start)
        aggregate = "count" if spoken is None or spoken["read"] in COLLECTIONS else "sum"
        return say.spoken_count(place.span, *_spoken(start, spoken, aggregate, ""))
    return None


def _spoken(
    start: int, spoken: re.Match[str] | None, aggregate: str, after: str
) -> tuple[Span | None, str]:
    """What takes the place of a count in words, if all of its parts are there, and of which text."""
    if spoken is None:
        return None, ""
    whole = f"{aggregate}({spoken['read']} by {spoken['by']} over {spoken['over']}){after}"
    return Span(start, spoken.end()), whole


def _ahead(pattern: re.Pattern[str], place: Place, start: int) -> re.Match[str] | None:
    return pattern.match(place.text, start, start + _FAR)
