"""Takes out of a request what must never be stored or analysed (docs/api.md, "Validation").

Confidential headers are removed, card numbers are masked in headers, metadata and free text, and
metadata entries that hold security codes, PINs or track data are dropped. Identifiers and the
e-mail address stay as they were sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from tollkeeper.engine.intake.card_numbers import Mask, has_run, mask_card_numbers, mask_number
from tollkeeper.engine.intake.field_rules import join_values
from tollkeeper.engine.intake.payment import (
    Backend,
    Device,
    Method,
    MethodUpdate,
    Transaction,
    Update,
)

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
    r"eyJ[\w-]{6,}\.[\w-]*\.[\w-]*"
    r"|-----BEGIN"
    r"|^\s*(?:basic|bearer|digest|dpop|negotiate|ntlm)\s+[\w+/=.~\"-]{6,}"
    r"|(?:(?:(?<![a-z])|j|php)sess(?:ion)?[-_.]?(?:id|token)?|connect\.sid)=",
    re.IGNORECASE,
)
"""A JSON Web Token, a PEM text, credentials of a scheme, or a cookie of a session."""
_SCHEMES = ("basic", "bearer", "digest", "dpop", "negotiate", "ntlm")
_NAME_LENGTH = 64
"""What is known of longer names is not kept."""
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
_SECRET_HEADERS = ("Authorization", "Cookie", "Proxy-Authorization", "Set-Cookie", "X-CSRF-Token")


def _spellings(names: Iterable[str]) -> frozenset[str]:
    return frozenset(form for name in names for form in (name, name.lower(), name.title()))


# Names known to be harmless or secret, in their usual spellings: a set of them needs no search.
_HARMLESS = _spellings(_USUAL_HEADERS)
_USUAL_SECRETS = _spellings(_SECRET_HEADERS)

_SECRET_ENTRY = re.compile(
    r"(?:card[\s._-]*)?(?:[di]?cvv|cvc|cvd|cvn|cav|csc|cid|pin|pin[\s._-]*block"
    r"|security[\s._-]*code)[\s._-]*[12]?$|track(?!ing|er)",
    re.IGNORECASE,
)
"""Names of metadata entries that are dropped; tracking numbers are no track data."""

_COMPLEX_TYPES = frozenset({dict, list, float})


def scrub_origin(origin: Origin, mask: Mask | None) -> Origin:
    """A backend or device with no confidential header; a blank address is a missing one."""
    if origin.headers is None:
        return origin if origin.ip_address != "" else replace(origin, ip_address=None)
    headers: dict[str, str] = _public_headers(origin.headers)
    if mask is not None and has_run("x".join([*headers, *headers.values()])):
        headers = {mask(name): mask(value) for name, value in headers.items()}
    if headers is origin.headers and origin.ip_address != "":
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
    """The headers that are not confidential, with text for values; the same where all is well."""
    if list in map(type, headers.values()):
        headers = {name: join_values(value) for name, value in headers.items()}
    secret = [
        name
        for name, value in headers.items()
        if name not in _HARMLESS and (_is_confidential(name) or is_confidential_value(value))
    ]
    if not secret:
        return headers
    return {name: value for name, value in headers.items() if name not in secret}


def _is_confidential(name: str) -> bool:
    if name in _USUAL_SECRETS:
        return True
    return _has_secret_name(name) if len(name) <= _NAME_LENGTH else _names_a_secret(name)


def _names_a_secret(name: str) -> bool:
    return CONFIDENTIAL_HEADER.search(name) is not None


_has_secret_name = lru_cache(maxsize=1024)(_names_a_secret)


def is_confidential_value(value: str) -> bool:
    """Whether a header's value is a secret, whatever its name."""
    if value.isascii():
        # What any of them has is found sooner than what all of it must be.
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
    """Whether nothing has to be looked into; a number with an exponent may hide its digits."""
    return not _has_secret_entry(tuple(metadata)) and _COMPLEX_TYPES.isdisjoint(
        map(type, metadata.values())
    )


# A shop's metadata mostly has the same names; those kept are as small as metadata is.
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
