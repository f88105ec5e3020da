"""The one filter of search, figures and stream, as query parameters or as text.

The text form `action:deny bin:470200 since:1h` and the query parameters of the same names make the
same filter. A payment must match every name; where a name is given twice, either value will do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import Action
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.labels.label import SOURCES, VERDICTS
from tollkeeper.engine.lists.values import read_instant
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search.terms import NO_VALUE, Facet, Term, address_term

_MOST = 50
"""The most members of a filter."""
_LEAST_SCORE, _MOST_SCORE = Decimal(0), Decimal(1)
MOST_VERSION = 999_999_999
_LONGEST = 256
_SHORTEST_BEGINNING = 4
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_SCORE = re.compile(r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?")
_WORD = re.compile(r'\s*([a-z_]+):("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)')
_LATEST = to_microseconds(datetime(9999, 1, 1, tzinfo=UTC))
"""Of moments. Where the calendar ends, there is no next day, and in some time zones no date."""
_BIN = re.compile(r"[0-9]{6}(?:[0-9]{2})?")

FilterMember: TypeAlias = tuple[str, str]
"""A member's name and value, as in a query or in the text form."""


class Filter(Struct, frozen=True):
    """Times are in µs (`since` inclusive, `until` exclusive), scores in hundredths, both ends
    inclusive.

    A payment matches if it has one term of each tuple in `terms`, and, where `ids` or `beginnings`
    are given, if its id is one of `ids` or starts with one of `beginnings`.
    """

    since: int | None = None
    until: int | None = None
    score_from: int = 0
    score_to: int | None = None
    terms: tuple[tuple[Term, ...], ...] = ()
    ids: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()

    @property
    def scored(self) -> bool:
        """Whether the filter is limited to certain scores."""
        return self.score_from > 0 or self.score_to is not None


def _text(facet: Facet) -> Callable[[str], Term]:
    return lambda text: (facet, text)


def _choice(facet: Facet, *choices: str) -> Callable[[str], Term]:
    def read(text: str) -> Term:
        if text not in choices:
            known = ", ".join(f"`{choice}`" for choice in choices)
            raise ValueError(f"this is one of {known}")
        return facet, NO_VALUE if text == "none" else text

    return read


def _or_none(facet: Facet) -> Callable[[str], Term]:
    return lambda text: (facet, NO_VALUE if text == "none" else text)


def _version(text: str) -> Term:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_VERSION))):
        raise ValueError("a version is a whole number")
    return Facet.VERSION, int(text)


def _holdout(text: str) -> Term:
    if text not in ("true", "false"):
        raise ValueError("this is one of `true`, `false`")
    return Facet.HOLDOUT, int(text == "true")


def _labelled(text: str) -> Term:
    source, _, verdict = text.partition(":")
    if source not in SOURCES or verdict not in VERDICTS:
        raise ValueError("this is a source and what it says, as in `chargeback:fraud`")
    return Facet.LABELLED, text


def _bin(text: str) -> Term:
    if not _BIN.fullmatch(text):
        raise ValueError("this is the first 6 or 8 digits of a card number")
    return Facet.BIN, text


_READERS: dict[str, Callable[[str], Term]] = {
    "action": _choice(Facet.ACTION, *get_args(Action), "none"),
    "rule": _or_none(Facet.RULE),
    "version": _version,
    "condition": _or_none(Facet.CONDITION),
    "holdout": _holdout,
    "status": _choice(Facet.STATUS, *get_args(PaymentStatus)),
    "label": _choice(Facet.LABEL, *VERDICTS, "none"),
    "labelled": _labelled,
    "merchant": _text(Facet.MERCHANT),
    "currency": _text(Facet.CURRENCY),
    "card": _text(Facet.CARD),
    "bin": _bin,
    "device": _text(Facet.DEVICE),
    "ip": address_term,
    "user": _text(Facet.USER),
    "email": lambda text: (Facet.EMAIL, text.lower()),
    "order": _text(Facet.ORDER),
}
_OTHERS = ("since", "until", "score", "score_from", "score_to", "id")
NAMES = (*_READERS, *_OTHERS)
"""Every name that a filter accepts."""


def read_filter(members: Iterable[FilterMember], now: int) -> Filter:
    """Read a filter from its members; spans such as `1h` are counted back from `now` (µs).

    Raises `Invalid` with every wrong member, each under its name.
    """
    reading = _Reading(now)
    violations = []
    given = list(members)
    if len(given) > _MOST:
        raise Invalid.at("q", "too_long", f"a filter has at most {_MOST} members")
    for name, text in given:
        try:
            reading.take(name, text)
        except KeyError:
            known = ", ".join(f"`{name}`" for name in sorted(NAMES))
            message = f"there is no `{name}` to find payments by; there is {known}"
            violations.append(Violation(name, "invalid_value", message))
        except ValueError as error:
            violations.append(Violation(name, "invalid_value", str(error)))
    violations += reading.contradictions()
    if violations:
        raise Invalid(violations)
    return reading.filter()


def within_merchants(wanted: Filter, merchants: tuple[str, ...]) -> Filter:
    """Return the filter limited to these merchants' payments; unchanged if there are none."""
    if not merchants:
        return wanted
    seen: tuple[Term, ...] = tuple((Facet.MERCHANT, merchant) for merchant in merchants)
    return replace(wanted, terms=(*wanted.terms, seen))


def read_members(text: str) -> list[FilterMember]:
    """Split the text form into members. Raises `Invalid` at `q`, naming the place."""
    members, position = [], 0
    text = text.strip()
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None:
            rest = text[position:].strip()[:40]
            message = f"from `{rest}` on this is not of the form `name:value`, as in `action:deny`"
            raise Invalid.at("q", "invalid_format", message)
        name, value = found.groups()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        members.append((name, value))
        position = found.end()
    return members


class _Reading:
    def __init__(self, now: int) -> None:
        self._now = now
        self._terms: dict[str, list[Term]] = {}
        self._since: int | None = None
        self._until: int | None = None
        self._scores: tuple[Decimal, Decimal | None] = (_LEAST_SCORE, None)
        self._ids: list[str] = []
        self._beginnings: list[str] = []

    def take(self, name: str, text: str) -> None:
        if not 0 < len(text) <= _LONGEST:
            raise ValueError(f"this has 1 to {_LONGEST} characters")
        lowest, highest = self._scores
        match name:
            case "since":
                self._since = read_moment(text, self._now)
            case "until":
                self._until = read_moment(text, self._now)
            case "score_from":
                self._scores = _score(text), highest
            case "score_to":
                self._scores = lowest, _score(text)
            case "score":
                first, dots, last = text.partition("..")
                last = last if dots else first
                self._scores = (
                    _score(first) if first or not dots else _LEAST_SCORE,
                    _score(last) if last or not dots else _MOST_SCORE,
                )
            case "id" if text.endswith("*"):
                if len(text) <= _SHORTEST_BEGINNING:
                    message = f"the beginning of an id has {_SHORTEST_BEGINNING} characters or more"
                    raise ValueError(message)
                self._beginnings.append(text[:-1])
            case "id":
                self._ids.append(text)
            case _:
                self._terms.setdefault(name, []).append(_READERS[name](text))

    def contradictions(self) -> Iterator[Violation]:
        """Of a time, or a range of scores, that ends before it begins: no payment can be in it."""
        if self._since is not None and self._until is not None:
            yield from span_violations(self._since, self._until)
        lowest, highest = self._scores
        if highest is not None and lowest > highest:
            message = "the lowest score is more than the highest"
            yield Violation("score_from", "out_of_range", message)

    def filter(self) -> Filter:
        lowest, highest = self._scores
        return Filter(
            since=self._since,
            until=self._until,
            score_from=_hundredths(lowest, ROUND_CEILING),
            score_to=None if highest is None else _hundredths(highest, ROUND_FLOOR),
            terms=tuple(map(tuple, self._terms.values())),
            ids=tuple(self._ids),
            beginnings=tuple(self._beginnings),
        )


def read_moment(text: str, now: int) -> int:
    """Read an instant, or a span back from `now` (µs) such as `1h`, as µs; one before 1970 or after
    9998 as the next within. Raises `ValueError`.
    """
    span = _SPAN.fullmatch(text)
    if span is not None:
        moment = now - int(span[1]) * _UNITS[span[2]] * 1_000_000
    else:
        try:
            # An unescaped plus sign in a query arrives as a space.
            moment = read_instant(text.replace(" ", "+"))
        except ValueError:
            message = 'this is a span back from now such as "1h" or "30d", or a time such as'
            raise ValueError(f'{message} "2030-01-31T12:00:00Z"') from None
    return min(max(moment, 0), _LATEST)


def span_violations(since: int, until: int) -> Iterator[Violation]:
    """What is wrong with a time that begins at `since` and ends before `until` (µs)."""
    if since >= until:
        yield Violation("since", "out_of_range", "`since` is not before `until`")


def _score(text: str) -> Decimal:
    if not _SCORE.fullmatch(text) or (number := Decimal(text)) > _MOST_SCORE:
        raise ValueError("a score is a number between 0 and 1")
    return number


def _hundredths(score: Decimal, rounding: str) -> int:
    """Return the score in hundredths. More decimals are rounded towards the inside of the range, which
    matches the same scores, since scores have two.
    """
    return int((score * 100).to_integral_value(rounding))
