"""Recognise what authors write out of habit from other languages, and say how it is written here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place

_CONTAINS: Final = frozenset({"includes", "include", "has", "contain"})
_LIKE = re.compile(r'like\s+"([^"\\\n]*)"', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}(?![0-9,.])")
_LENGTH = re.compile(r"([0-9]+)\s*([A-Za-z]+)")
_UNITS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), (1, "ms")),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (1, "s")),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (1, "m")),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (1, "h")),
    **dict.fromkeys(("d", "day", "days"), (1, "d")),
    **dict.fromkeys(("w", "week", "weeks"), (7, "d")),
}
_CURRENCY = re.compile(r"[A-Z]{3}\b")
_ACTION = re.compile(r'"(allow|challenge|deny)"')
_LITERALS = re.compile(r"\(([^()\n]*)\)")


def habit(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    return _comment(place) or _word(place) or _after_number(place) or _list(place) or _test(place)


def _comment(place: Place) -> Diagnostic | None:
    if place.found != "//":
        return None
    return say.foreign_comment(place.span, is_alone=place.begins_line)


def _word(place: Place) -> Diagnostic | None:
    if place.found.lower() in _CONTAINS and place.takes("CONTAINS"):
        return say.foreign_contains(place.span, place.found)
    like = _LIKE.match(place.text, place.start)
    if like and place.takes("CONTAINS"):
        return say.foreign_like(Span(*like.span()), like[1])
    action = _ACTION.match(place.text, place.start)
    if action and place.takes("ALLOW"):
        return say.quoted_action(Span(*action.span()), action[1])
    return None


def _after_number(place: Place) -> Diagnostic | None:
    """A decimal comma, a percentage, a currency, or a unit of time written out."""
    previous = place.previous
    if length := _LENGTH.match(place.text, place.start):
        return _length(length)
    if previous is None or previous.kind != "NUMBER":
        return None
    start = previous.span.start
    if place.touches and (decimals := _DECIMAL_COMMA.match(place.text, start)):
        return say.decimal_comma(Span(*decimals.span()), decimals[0])
    if place.found == "%":
        return say.percentage(Span(start, place.span.end), previous.text)
    if place.begins_line:
        return None
    length = _LENGTH.match(place.text, start)
    if length and (found := _length(length)):
        return found
    if _CURRENCY.fullmatch(place.found) and place.found.lower() not in place.reserved:
        return say.amount_with_currency(place.span, place.found, previous.span.end)
    return None


def _length(found: re.Match[str]) -> Diagnostic | None:
    times, unit = _UNITS.get(found[2].lower(), (0, ""))
    is_right = found[0] == f"{found[1]}{unit}"
    if not times or is_right or len(found[1]) > 9 or "\n" in found[0]:
        return None
    return say.foreign_unit(Span(*found.span()), found[0], f"{int(found[1]) * times}{unit}")


def _list(place: Place) -> Diagnostic | None:
    bracket = place.bracket
    if place.found != "," or bracket is None or bracket.text != "(":
        return None
    before = place.text[: bracket.span.start].rstrip()
    whole = _LITERALS.match(place.text, bracket.span.start)
    if not re.search(r"\bin$", before[-3:]) or whole is None:
        return None
    return say.round_list(Span(*whole.span()), whole[1])


def _test(place: Place) -> Diagnostic | None:
    is_file = place.previous is not None and place.previous.kind == "STRING"
    if place.item == "test" and place.found == "," and is_file and place.takes("GIVEN"):
        is_repeated = place.text[place.span.end :].lstrip().startswith("given")
        return say.given_again(place.span, "" if is_repeated else " given")
    return None
