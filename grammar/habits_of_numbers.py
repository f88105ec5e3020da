"""Habits of other languages in numbers, amounts and lengths of time."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place

_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}(?![0-9,.])")
_GROUPED = re.compile(
    r"[0-9]{1,3}(?:(?:\.[0-9]{3})+,[0-9]{1,2}|(?:\.[0-9]{3}){2,}"
    r"|(?:[ '’\u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]{1,2})?)(?![0-9,.'])"
)
_LENGTH = re.compile(r"([0-9]+)[ \t]*([A-Za-z]+)")
_QUOTED_LENGTH = re.compile(r"[\"']([0-9]{1,9}(?:ms|s|m|h|d))[\"']")
_UNITS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), (1, "ms")),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (1, "s")),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (1, "m")),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (1, "h")),
    **dict.fromkeys(("d", "day", "days"), (1, "d")),
    **dict.fromkeys(("w", "week", "weeks"), (7, "d")),
}
_VARYING: Final = {
    **dict.fromkeys(("mo", "mon", "month", "months"), 30),
    **dict.fromkeys(("y", "yr", "year", "years"), 365),
}
"""Units that aren't always of one length, in days."""
_LONGEST_WINDOW: Final = 90
_CURRENCY = re.compile(r"[A-Z]{3}\b")
_WITH_CURRENCY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Z]{3})\b")
_SYMBOLS: Final = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_AMOUNT = re.compile(r"[ \t]*([0-9]+(?:\.[0-9]+)?)")
_SCALED = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(k|K|M)\b")
_SCALES: Final = {"k": 3, "K": 3, "M": 6}
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![0-9:])")
_REMAINDER = re.compile(r"%\s*[0-9(]")
_FACTOR = re.compile(r"x\s+[0-9A-Za-z]")
_EXPONENT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?[eE]\+?([0-9]{1,2})\b")


def habit_of_number(place: Place) -> Diagnostic | None:
    """A decimal comma, grouped thousands, a percentage, a currency, or a unit that there is none of."""
    previous = place.previous
    if place.found in _SYMBOLS and (symbol := _symbol(place, _SYMBOLS[place.found])):
        return symbol
    if place.accepted == {"DURATION"} and (quoted := _QUOTED_LENGTH.match(place.text, place.start)):
        return say.quoted_length(Span(*quoted.span()), quoted[1])
    if place.found == "+" and place.takes("NUMBER") and place.takes("MINUS"):
        return say.plus_sign(place.span)
    if previous is None or previous.kind != "NUMBER":
        return _written(place, place.start)
    start = previous.span.start
    if place.touches and (decimals := _DECIMAL_COMMA.match(place.text, start)):
        return say.decimal_comma(Span(*decimals.span()), decimals[0])
    if clock := _CLOCK.match(place.text, start):
        return say.time_of_day(Span(*clock.span()))
    if place.found == "%" and not _REMAINDER.match(place.text, place.start):
        return say.percentage(Span(start, place.span.end), previous.text)
    if place.begins_line:
        return None
    if place.found == "x" and _FACTOR.match(place.text, place.start):
        return say.word_for_and(place.span, "x", "*")
    if place.found in ("times", "payments", "transactions", "attempts") and place.takes("OR"):
        return say.needless_word(place.span, place.found)
    if written := _written(place, start):
        return written
    if _CURRENCY.fullmatch(place.found) and place.found.lower() not in place.reserved:
        return say.amount_with_currency(
            Span(previous.span.end, place.span.end), place.found, place.span
        )
    return None


def _symbol(place: Place, currency: str) -> Diagnostic | None:
    previous = place.previous
    amount = _AMOUNT.match(place.text, place.span.end)
    if amount and place.takes("NUMBER"):
        span = Span(place.start, amount.end())
        return say.amount_with_symbol(span, amount[1], currency, is_given=place.item == "test")
    if previous is not None and previous.kind == "NUMBER" and not place.begins_line:
        span = Span(previous.span.start, place.span.end)
        is_given = place.item == "test"
        return say.amount_with_symbol(span, previous.text, currency, is_given=is_given)
    return None


def _written(place: Place, start: int) -> Diagnostic | None:
    """A number as a whole, from its start on."""
    text = place.text
    if grouped := _GROUPED.match(text, start):
        plain = re.sub(r"[^0-9,]", "", grouped[0].replace(".", "", grouped[0].count(".")))
        if "," not in grouped[0] and re.search(r"\.[0-9]{1,2}\Z", grouped[0]):
            plain = re.sub(r"[^0-9.]", "", grouped[0])
        return say.grouped_number(Span(*grouped.span()), plain.replace(",", "."))
    if scaled := _SCALED.match(text, start):
        if place.accepted == {"DURATION"}:
            return None
        number = f"{Decimal(scaled[1]).scaleb(_SCALES[scaled[2]]):f}"
        return say.short_number(Span(*scaled.span()), scaled[0], number)
    if power := _EXPONENT.match(text, start):
        return say.short_number(Span(*power.span()), power[0], f"{Decimal(power[0]):f}")
    if amount := _WITH_CURRENCY.match(text, start):
        span = Span(amount.start(2), amount.end(2))
        return say.amount_with_currency(span, amount[2], span)
    length = _LENGTH.match(text, start)
    return _length(place, length) if length else None


def _length(place: Place, found: re.Match[str]) -> Diagnostic | None:
    word = found[2].lower()
    if len(found[1]) > 9:
        return None
    if word in _VARYING:
        days = int(found[1]) * _VARYING[word]
        is_window = place.accepted == {"DURATION"} and place.before == "over"
        if is_window and days > _LONGEST_WINDOW:
            return say.too_long_window(Span(*found.span()), found[0], _LONGEST_WINDOW)
        return say.varying_unit(Span(*found.span()), found[0], f"{days}d")
    times, unit = _UNITS.get(word, (0, ""))
    is_right = found[0] == f"{found[1]}{unit}"
    if not times or is_right or found[2] == "M":
        return None
    return say.foreign_unit(Span(*found.span()), found[0], f"{int(found[1]) * times}{unit}")
