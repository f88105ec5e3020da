"""Takes out of a request what must never be stored or analysed (API.md, "Validation").

Confidential headers are removed, card numbers are masked in headers, metadata and free text, and
metadata entries that hold security codes, PINs or track data are dropped. Identifiers and the
e-mail address stay as they were sent.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec.structs import replace

from tollkeeper.engine.card_numbers import masked, masked_number
from tollkeeper.engine.field_rules import joined
from tollkeeper.engine.payment import (
    Backend,
    Device,
    Method,
    MethodUpdate,
    Payment,
    Transaction,
    Update,
)

Origin = TypeVar("Origin", Backend, Device)
Methods = TypeVar("Methods", Method, MethodUpdate)

CONFIDENTIAL_HEADER = re.compile(
    r"auth(?!ority)|bearer|cookie|credential|csrf|jwt|passw|secret|session|token|xsrf"
    r"|(?:^|[-_])(?:(?:api)?key|sid)$",
    re.IGNORECASE,
)
"""Any of these in a header's name makes it confidential."""

_USUAL = (
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
    "Referer",
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
# Names known to be harmless, in their usual spellings: a set of them needs no search.
_HARMLESS = frozenset(form for name in _USUAL for form in (name, name.lower(), name.title()))

_SECRET_ENTRY = re.compile(
    r"(?:card[\s._-]*)?(?:cvv|cvc|cid|pin|security[\s._-]*code)[\s._-]*[12]?$|track(?!ing|er)",
    re.IGNORECASE,
)
"""Names of metadata entries that are dropped; tracking numbers are no track data."""


def without_secrets(origin: Origin) -> Origin:
    """A backend or device with no confidential header; a blank address is a missing one."""
    headers = origin.headers
    if headers is None and origin.ip_address != "":
        return origin
    kept = None if headers is None else _public_headers(headers)
    return replace(origin, ip_address=origin.ip_address or None, headers=kept)


def scrubbed_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata with secret entries dropped and card numbers masked, at any depth."""
    return {
        masked(name): _scrubbed_value(value)
        for name, value in metadata.items()
        if not _SECRET_ENTRY.match(name)
    }


def masked_payment(payment: Payment) -> Payment:
    """A payment with card numbers in its headers and free text masked."""
    return replace(
        payment,
        method=_masked_method(payment.method),
        backend=payment.backend and _masked_headers(payment.backend),
        device=payment.device and _masked_headers(payment.device),
        transactions=tuple(map(_masked_transaction, payment.transactions)),
    )


def masked_update(update: Update) -> Update:
    """An update with card numbers in its free text masked."""
    return replace(
        update,
        method=update.method and _masked_method(update.method),
        transactions=tuple(map(_masked_transaction, update.transactions)),
    )


def _masked_headers(origin: Origin) -> Origin:
    if origin.headers is None:
        return origin
    headers = {masked(name): masked(value) for name, value in origin.headers.items()}
    return replace(origin, headers=headers)


def _masked_method(method: Methods) -> Methods:
    return method if method.type is None else replace(method, type=masked(method.type))


def _masked_transaction(transaction: Transaction) -> Transaction:
    connector = transaction.connector
    shown = replace(
        connector,
        type=connector.type and masked(connector.type),
        response_code=connector.response_code and masked(connector.response_code),
    )
    return replace(transaction, connector=shown)


def _public_headers(headers: dict[str, str]) -> dict[str, str]:
    if not headers.keys() <= _HARMLESS:
        headers = {
            name: value for name, value in headers.items() if not CONFIDENTIAL_HEADER.search(name)
        }
    if list in map(type, headers.values()):
        headers = {name: joined(value) for name, value in headers.items()}
    return headers


def _scrubbed_value(value: Any) -> Any:
    match value:
        case str():
            return masked(value)
        case bool() | None:
            return value
        case int() | float():
            return masked_number(value)
        case list():
            return [_scrubbed_value(item) for item in value]
        case _:
            return scrubbed_metadata(value)
