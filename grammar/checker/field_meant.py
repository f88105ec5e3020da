"""Guess what was meant by a name that is no field: a field, another way to the value, or neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST = 64
_MOST = 3
_SAME: Final = {
    **dict.fromkeys(("brand", "scheme"), "network"),
    **dict.fromkeys(("customer", "buyer", "shopper", "payer", "cardholder"), "user"),
    **dict.fromkeys(("shop", "store", "seller"), "merchant"),
    "mail": "email",
    "4": "four",
    "mcc": "category_code",
}
"""Words of other systems for the words of fields."""
_OF_THE_PAYMENT: Final = frozenset({"payment", "charge", "purchase", "order"})
"""Words that other systems put before a payment's own fields."""
_OTHERWISE: Final = {
    **dict.fromkeys(
        ("created_at", "created", "date", "time", "datetime", "created_time"), "timestamp"
    ),
    **dict.fromkeys(("risk_score", "fraud_score", "bot_score", "risk", "probability"), "score"),
    **dict.fromkeys(("total", "price", "value", "amount_cents"), "amount"),
    **dict.fromkeys(("email_domain", "domain", "user_domain", "user_email_domain"), "email_domain(user.email)"),
    **dict.fromkeys(("hour", "hour_of_day", "timestamp_hour"), "hour(timestamp)"),
    **dict.fromkeys(
        ("weekday", "day_of_week", "timestamp_weekday", "day"), "weekday(timestamp)"
    ),
    **{f"amount_{code.lower()}": f'amount_in("{code}")' for code in ("USD", "EUR", "GBP")},
    **dict.fromkeys(("payment_method", "method_name"), "method.type"),
}  # fmt: skip
"""Names of other systems, their words joined by `_`, and what says the same here."""
_HEADERS: Final = {
    **dict.fromkeys(("user_agent", "useragent", "ua"), "User-Agent"),
    **dict.fromkeys(("referer", "referrer"), "Referer"),
    **dict.fromkeys(("language", "locale", "accept_language"), "Accept-Language"),
    **{each.lower().replace("-", "_"): each for each in ("Accept", "Accept-Encoding", "Host", "Origin")},
}  # fmt: skip
_OF_A_CARD: Final = "@bins[method.card.bin]"
_OF_AN_ADDRESS: Final = "@places[device.ip_address]"
_NO_FIELD: Final = (
    (
        frozenset({"now", "today"}),
        frozenset[str](),
        "the payment's own time is `timestamp`; a window counts back from it",
    ),
    (
        frozenset({"vpn", "proxy", "tor", "datacenter", "hosting"}),
        frozenset({"is", "ip", "device"}),
        "keep their networks in a list: `device.ip_address in @networks`",
    ),
    (
        frozenset({"disposable", "throwaway", "freemail"}),
        frozenset({"is", "email"}),
        "keep their domains in a list: `email_domain(user.email) in @domains`",
    ),
    (
        frozenset({"age", "created", "registered", "seen", "tenure", "new"}),
        frozenset({"user", "account", "is", "first"}),
        "`age(payments by user.id)` is the time since the first payment of a user",
    ),
    (
        frozenset({"number", "pan", "hash", "token"}),
        frozenset({"card"}),
        "a card's number never arrives: `method.card.fingerprint` tells cards apart",
    ),
)
"""Words of what is no field, alone or with one of those beside it, and how it is asked."""
_LOOKED_UP: Final = frozenset({"country", "city", "region", "asn", "issuer", "bank", "funding"})


def _words(names: Iterable[str]) -> tuple[str, ...]:
    found = (word.lower() for name in names for word in _WORD.findall(name))
    return tuple(part for word in found for part in _SAME.get(word, word).split("_"))


def fields_meant(path: tuple[str, ...], fields: Iterable[str]) -> list[str]:
    """Return what a path was most likely meant to be, the likeliest first: fields whose words it
    has in their order, its last one in their last name, or an expression.
    """
    if sum(map(len, path)) > _LONGEST:
        return []
    words = _words(path)
    known = list(fields)
    for asked in [words, *([words[1:]] if words[:1] and words[0] in _OF_THE_PAYMENT else [])]:
        if asked and (found := list(_of_words(asked, known))):
            return found if len(found) <= _MOST else []
        if (said := _OTHERWISE.get("_".join(asked))) is not None:
            return [said]
    return [f'{header[0]}.headers["{header[1]}"]' for header in _header(words)]


def _of_words(asked: tuple[str, ...], fields: list[str]) -> Iterator[str]:
    found = []
    for field in fields:
        *_, last = names = field.split(".")
        rest = iter(_words(names))
        if asked[-1] in _words([last]) and all(word in rest for word in asked):
            found.append(field)
    yield from sorted(found, key=lambda each: each.startswith("backend."))


def _header(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    sides = ("device", "backend")
    side, rest = (words[0], words[1:]) if words[:1] and words[0] in sides else ("device", words)
    rest = rest[1:] if rest[:1] in (("headers",), ("header",)) else rest
    if (header := _HEADERS.get("_".join(rest))) is not None:
        yield side, header


def where_it_is(path: tuple[str, ...]) -> str | None:
    """Return how that is asked for which no field stands, if a path names such a thing."""
    if sum(map(len, path)) > _LONGEST:
        return None
    words = _words(path)
    if looked_up := next((word for word in words if word in _LOOKED_UP), None):
        of_address = {"ip", "device", "backend", "user"} & set(words)
        table = _OF_AN_ADDRESS if of_address else _OF_A_CARD
        return f"look it up in a table of yours: `{table}.{looked_up}`"
    return next(
        (
            said
            for about, beside, said in _NO_FIELD
            if about & set(words) and (len(words) == 1 or beside & set(words))
        ),
        None,
    )
