"""Remove from a request what must never be stored or analysed (docs/api.md, "Validation").

Confidential headers are removed, card numbers are masked in headers, metadata and free text, and
metadata entries that hold security codes, PINs or track data are dropped. Identifiers and the
e-mail address stay as they were sent.

A card number is found by its scheme's prefix and length and the Luhn check. Of 16 digits and more
the first 8 and the last 4 are kept, of fewer the first 6 and the last 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from tollkeeper.engine.intake.field_rules import is_plain, join_values
from tollkeeper.engine.intake.payment import (
    Backend,
    Device,
    Method,
    MethodUpdate,
    Transaction,
    Update,
)

try:
    from tollkeeper.engine.intake._digits import may_hold_number as may_hold_number
except ImportError:  # where C can't be built

    def may_hold_number(_body: bytes, /) -> bool:
        """Whether a JSON text may hold a card number."""
        return True


try:
    from tollkeeper.engine.intake._plain import are_public
except ImportError:  # where C can't be built

    def are_public(
        _headers: Mapping[str, Any], _harmless: frozenset[str], _watched: frozenset[str], /
    ) -> bool:
        """Whether headers are text, and certainly not confidential."""
        return False


Origin = TypeVar("Origin", Backend, Device)
Methods = TypeVar("Methods", Method, MethodUpdate)

CONFIDENTIAL_HEADER = re.compile(
    r"appcheck|assertion|auth(?!ority)|bearer|cert|cookie|credential|csrf|dpop|jwt|oidc"
    r"|pass(?:w|code|phrase|key)|principal|pwd|saml|secret|sess(?:ion|id)|ticket|token|wsse|xsrf"
    r"|(?:^|[-_.])(?:(?:access|api|app)?key|[ht]?otp|pin|sid)(?:$|[-_.])",
    re.IGNORECASE,
)
"""Any of these in a header's name makes it confidential."""

_CONFIDENTIAL_VALUE = re.compile(
    r"(?<![\w-])(?>[\w-]*?eyJ)[\w-]{6,}+\.[\w-]*+\."
    r"|-----BEGIN"
    r"|^\s*(?:basic|bearer|digest|dpop|negotiate|ntlm)\s+[\w+/=.~\"-]{6,}"
    r"|(?:(?:(?<![a-z])|j|php)sess(?:ion)?[-_.]?(?:id|token)?|connect\.sid)=",
    re.IGNORECASE,
)
"""A JSON Web Token, a PEM text, credentials of a scheme, or a cookie of a session.

A token is looked for once in each run of its characters, so that the search is linear in the text.
"""
_SCHEMES = ("basic", "bearer", "digest", "dpop", "negotiate", "ntlm")
_NAMES_LENGTH = 2048
"""The most characters of a set of names that is cached."""
_USUAL_HEADERS = (
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Cache-Control",
    "CF-Connecting-IP",
    "CF-IPCountry",
    "CF-Ray",
    "Connection",
    "Content-Length",
    "Content-Type",
    "Date",
    "DNT",
    "Forwarded",
    "Host",
    "Origin",
    "Pragma",
    "Priority",
    "Sec-CH-UA",
    "Sec-CH-UA-Arch",
    "Sec-CH-UA-Full-Version-List",
    "Sec-CH-UA-Mobile",
    "Sec-CH-UA-Model",
    "Sec-CH-UA-Platform",
    "Sec-CH-UA-Platform-Version",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Site",
    "Sec-Fetch-User",
    "Sec-GPC",
    "TE",
    "Upgrade-Insecure-Requests",
    "User-Agent",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "X-Requested-With",
)
_WATCHED_HEADERS = (
    "If-Modified-Since",
    "If-None-Match",
    "Referer",
    "Traceparent",
    "X-Amzn-Trace-Id",
    "X-Correlation-ID",
    "X-Request-ID",
)
_SECRET_HEADERS = ("Authorization", "Cookie", "Proxy-Authorization", "Set-Cookie", "X-CSRF-Token")


def _spellings(names: Iterable[str]) -> frozenset[str]:
    return frozenset(form for name in names for form in (name, name.lower(), name.title()))


# Names that are harmless, harmless except for their values, or secret, in their usual spellings: they
# are looked up, and not searched for.
_HARMLESS = _spellings(_USUAL_HEADERS)
_WATCHED = _spellings(_WATCHED_HEADERS)
_USUAL_SECRETS = _spellings(_SECRET_HEADERS)

_SECRET_ENTRY = re.compile(
    r"(?:card[\s._-]*)?(?:[di]?cvv|cvc|cvd|cvn|cav|csc|cid|pin|pin[\s._-]*block"
    r"|security[\s._-]*code)[\s._-]*[12]?$|track(?!ing|er)",
    re.IGNORECASE,
)
"""Names of metadata entries that are dropped; tracking numbers are no track data."""


def scrub_origin(origin: Origin, mask: Mask | None) -> Origin:
    """A backend or device without confidential headers; a blank address counts as missing."""
    sent = origin.headers
    if sent is None or (mask is None and are_public(sent, _HARMLESS, _WATCHED)):
        return origin if origin.ip_address != "" else replace(origin, ip_address=None)
    headers: dict[str, str] = _public_headers(sent)
    if mask is not None and has_run("x".join([*headers, *headers.values()])):
        headers = {mask(name): mask(value) for name, value in headers.items()}
    if headers is sent and origin.ip_address != "":
        return origin
    return replace(origin, ip_address=origin.ip_address or None, headers=headers)


def scrub_metadata(metadata: dict[str, Any], mask: Mask | None) -> dict[str, Any]:
    """Metadata with secret entries dropped and card numbers masked, at any depth."""
    if mask is None and _is_harmless(metadata):
        return metadata
    return _scrub_entries(metadata, mask or mask_card_numbers)


def mask_method(method: Methods, mask: Mask) -> Methods:
    return method if method.type is None else replace(method, type=mask(method.type))


def mask_transaction(transaction: Transaction, mask: Mask) -> Transaction:
    connector = transaction.connector
    shown = replace(
        connector,
        type=connector.type and mask(connector.type),
        response_code=connector.response_code and mask(connector.response_code),
    )
    return replace(transaction, connector=shown)


def mask_update(update: Update, mask: Mask) -> Update:
    """An update with card numbers in its free text masked."""
    return replace(
        update,
        method=update.method and mask_method(update.method, mask),
        transactions=tuple(mask_transaction(each, mask) for each in update.transactions),
    )


def _public_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers that are not confidential, with strings for values; the same object if nothing
    changes."""
    if list in map(type, headers.values()):
        headers = {name: join_values(value) for name, value in headers.items()}
    names = tuple(headers)
    classify = _classify_cached if len("".join(names)) <= _NAMES_LENGTH else _classify
    kept, unknown = classify(names)
    secret = [name for name in unknown if is_confidential_value(headers[name])]
    if secret:
        kept = tuple(name for name in kept if name not in secret)
    return headers if len(kept) == len(headers) else {name: headers[name] for name in kept}


def _classify(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of headers whose names are not confidential, and those among them whose values may be."""
    kept = tuple(name for name in names if name in _HARMLESS or not _is_confidential(name))
    return kept, tuple(name for name in kept if name not in _HARMLESS)


# Cached, since a client sends the same names each time.
_classify_cached = lru_cache(maxsize=1024)(_classify)


def _is_confidential(name: str) -> bool:
    return name in _USUAL_SECRETS or CONFIDENTIAL_HEADER.search(name) is not None


def is_confidential_value(value: str) -> bool:
    """Whether a header's value is a secret, whatever its name."""
    if value.isascii():
        # A part that every secret contains is found faster than the whole pattern.
        low = value.lower()
        if not (
            "eyj" in low
            or "-----begin" in low
            or "sess" in low
            or "connect.sid=" in low
            or low.lstrip().startswith(_SCHEMES)
        ):
            return False
    return _CONFIDENTIAL_VALUE.search(value) is not None


def _is_harmless(metadata: dict[str, Any]) -> bool:
    """Whether no value needs to be searched. Fractions do: an exponent may hide a card number's digits."""
    return is_plain(metadata) and not _has_secret_entry(tuple(metadata))


# Cached, since a shop's metadata mostly has the same names; their size is bounded as metadata's is.
@lru_cache(maxsize=256)
def _has_secret_entry(names: tuple[str, ...]) -> bool:
    return any(map(_SECRET_ENTRY.match, names))


def _scrub_entries(metadata: dict[str, Any], mask: Mask) -> dict[str, Any]:
    return {
        mask(name): _scrub_value(value, mask)
        for name, value in metadata.items()
        if not _SECRET_ENTRY.match(name)
    }


def _scrub_value(value: Any, mask: Mask) -> Any:
    match value:
        case str():
            return mask(value)
        case bool() | None:
            return value
        case int() | float():
            return mask_number(value, mask)
        case list():
            return [_scrub_value(item, mask) for item in value]
        case _:
            return _scrub_entries(value, mask)


# First and last prefix of four digits, and the lengths of the numbers that begin so.
_CARD_SCHEMES = (
    ("3000", "3059", (14, 16, 19)),  # Diners Club
    ("3095", "3095", (14, 16, 19)),
    ("3400", "3499", (15,)),  # American Express
    ("3528", "3589", (16, 17, 18, 19)),  # JCB
    ("3600", "3699", (14, 16, 19)),  # Diners Club
    ("3700", "3799", (15,)),  # American Express
    ("3800", "3999", (14, 16, 19)),  # Diners Club, Hipercard
    ("4000", "4999", (13, 16, 19)),  # Visa, Elo
    ("5018", "5018", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("5020", "5020", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5038", "5038", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5041", "5041", (16,)),  # Elo
    ("5066", "5067", (16,)),
    ("5090", "5099", (16,)),
    ("5100", "5599", (16,)),  # Mastercard
    ("5893", "5893", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("6011", "6011", (16, 17, 18, 19)),  # Discover
    ("6062", "6062", (13, 16, 19)),  # Hipercard
    ("6200", "6299", (16, 17, 18, 19)),  # UnionPay, Discover, Elo
    ("6304", "6304", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("6362", "6363", (16,)),  # Elo
    ("6370", "6370", (16,)),  # Hipercard
    ("6440", "6599", (16, 17, 18, 19)),  # Discover, Elo
    ("6759", "6763", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("8100", "8199", (16, 17, 18, 19)),  # UnionPay
    ("2200", "2204", (16, 17, 18, 19)),  # Mir
    ("2221", "2720", (16,)),  # Mastercard
)
_LENGTHS = {
    f"{prefix:04}": lengths[::-1]
    for first, last, lengths in _CARD_SCHEMES
    for prefix in range(int(first), int(last) + 1)
}
_SHORTEST = 12
_LONGEST = 19

_RUN = re.compile(
    rf"[0-9](?:[ \u00a0-]?[0-9]|(?<=[0-9]{{4}})[._/](?=[0-9]{{3}})[0-9]){{{_SHORTEST - 1},}}"
)
_TO_SPACES = str.maketrans("\u00a0._/-", "     ")

_PASSED_OVER = " \u00a0-\\".encode()


def _table(zeros: bytes) -> bytes:
    """A table for `translate`: these characters to zeros, separators between groups of four to dots, and
    all others to x."""
    return bytes(
        ord("0" if byte in zeros else "." if byte in b"._/" else "x") for byte in range(256)
    )


_AS_ZERO = _table(b"0123456789")
# In a body with escapes, the characters of those that may stand for a digit or a separator, too.
_ESCAPED_AS_ZERO = _table(b"0123456789uadefADEF")
_SHORTEST_RUN = b"0" * _SHORTEST
_TWO_GROUPS = b"0000.0000"
_DOUBLED = bytes.maketrans(b"0123456789", bytes([0, 2, 4, 6, 8, 1, 3, 5, 7, 9]))
_PLAIN = bytes.maketrans(b"0123456789", bytes(range(10)))
_STARS = str.maketrans("0123456789", "**********")

# The most runs of digits in a body that are examined: an honest request has far fewer.
_MANY_RUNS = 250

Mask: TypeAlias = Callable[[str], str]


def mask_for(body: bytes) -> Mask | None:
    """The function that masks texts of the JSON `body`; None when it can't contain a card number.

    With very many runs of digits, a text with a run that could be a card number loses all its
    digits.
    """
    if not may_hold_number(body):
        return None
    # A single byte is found sooner than two, and most bodies have no escape.
    escaped = b"\\" in body and b"\\u" in body
    shown = body.translate(_ESCAPED_AS_ZERO if escaped else _AS_ZERO, _PASSED_OVER)
    runs = shown.count(_SHORTEST_RUN) + shown.count(_TWO_GROUPS)
    if runs == 0:
        return None
    return mask_card_numbers if runs <= _MANY_RUNS else blot_digits


def mask_card_numbers(text: str) -> str:
    """`text` with every card number in it masked; its cost is linear in its length."""
    return _RUN.sub(_masked_run, text)


def blot_digits(text: str) -> str:
    """`text`, with all digits masked if it has a run that is long enough for a card number."""
    return text.translate(_STARS) if has_run(text) else text


def has_run(text: str) -> bool:
    """Whether `text` has a run of digits as long as a card number; faster than masking it."""
    shown = text.encode().translate(_AS_ZERO, _PASSED_OVER)
    return _SHORTEST_RUN in shown or _TWO_GROUPS in shown


def mask_number(number: float, mask: Mask = mask_card_numbers) -> float | str:
    """A JSON number as it is, or as masked text when its digits are a card number."""
    if not (10 ** (_SHORTEST - 1) <= number < 10**_LONGEST) or number != int(number):
        return number
    text = str(int(number))
    shown = mask(text)
    return number if shown == text else shown


def _masked_run(match: re.Match[str]) -> str:
    """A run of digits with single separators, its card numbers masked; a number begins and ends where a
    group does."""
    run = match[0]
    groups = run.translate(_TO_SPACES).split(" ")
    digits = "".join(groups)
    if len(groups) == 1 and len(digits) > _LONGEST:
        return run
    starts = [0, *accumulate(map(len, groups))]
    ends = set(starts)
    sums = _luhn_sums(digits.encode())
    shown = list(digits)
    free = 0
    for start in starts:
        if start < free:
            continue
        for length in _LENGTHS.get(digits[start : start + 4], ()):
            end = start + length
            if end in ends and _passes_luhn(sums, start, end):
                kept = start + (8 if length >= 16 else 6)
                shown[kept : end - 4] = "*" * (end - 4 - kept)
                free = end
                break
    if not free:
        return run
    remaining = iter(shown)
    return "".join(next(remaining) if character.isdigit() else character for character in run)


def _luhn_sums(digits: bytes) -> tuple[list[int], list[int]]:
    """Running sums with the digits at odd places doubled, and with those at even places."""
    odd, even = bytearray(digits.translate(_PLAIN)), bytearray(digits.translate(_PLAIN))
    odd[1::2] = digits[1::2].translate(_DOUBLED)
    even[0::2] = digits[0::2].translate(_DOUBLED)
    return [0, *accumulate(odd)], [0, *accumulate(even)]


def _passes_luhn(sums: tuple[list[int], list[int]], start: int, end: int) -> bool:
    """Luhn (ISO/IEC 7812-1): the last digit is plain, every second one before it doubled."""
    running = sums[(end - 1) % 2]
    return (running[end] - running[start]) % 10 == 0
