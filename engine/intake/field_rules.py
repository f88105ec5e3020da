"""The field rules that types can't express, under the names that `payment.py` refers to.

Each method gives the violations of one value of the right type at `field`. Their source is
docs/api.md, "Validation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct

from tollkeeper.engine.instants import HOUR, to_microseconds
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.addresses import is_address, is_public_address
from tollkeeper.engine.intake.limits import Limits
from tollkeeper.engine.intake.payment import MAX_HEADER, MAX_TEXT
from tollkeeper.engine.intake.violations import Violation

try:
    from tollkeeper.engine.intake._plain import is_plain as is_plain
except ImportError:  # where C can't be built

    def is_plain(value: dict[str, Any], /) -> bool:
        """Whether an object has no object, array or fraction in it."""
        return _COMPLEX_TYPES.isdisjoint(map(type, value.values()))


_COMPLEX_TYPES = frozenset({dict, list, float})
_CONTAINERS = frozenset({dict, list})

INVALID: Final = object()
"""Replaces a value for which a violation was found."""

SentObject: TypeAlias = Struct | Mapping[str, Any]
"""An object as it was read, or its members, INVALID where a violation was found."""

SETTLED = frozenset({"succeeded", "declined"})
"""The statuses of a payment that require transactions, and of a transaction that require a response
code."""


class FieldRules(Struct, frozen=True, gc=False):
    """The rules of a request; timestamps lie in `earliest` … `latest` (µs since the epoch)."""

    limits: Limits
    earliest: int
    latest: int

    def is_within(self, instant: datetime) -> bool:
        """Whether `instant` is neither in the future nor too old."""
        return self.earliest <= to_microseconds(instant) <= self.latest

    def currency(self, field: str, value: str) -> Iterator[Violation]:
        if value not in self.limits.currencies:
            yield violations.unknown_code(field, "ISO 4217")

    def country(self, field: str, value: str) -> Iterator[Violation]:
        if value not in self.limits.countries:
            yield violations.unknown_code(field, "ISO 3166-1 alpha-2")

    def category_code(self, field: str, value: str) -> Iterator[Violation]:
        if value not in self.limits.category_codes:
            yield violations.unknown_code(field, "ISO 18245")

    def eight_digits(self, field: str, value: str) -> Iterator[Violation]:
        if not is_digits(value, 8):
            yield violations.invalid_format(field, "exactly 8 digits")

    def four_digits(self, field: str, value: str) -> Iterator[Violation]:
        if not is_digits(value, 4):
            yield violations.invalid_format(field, "exactly 4 digits")

    def instant(self, field: str, value: datetime) -> Iterator[Violation]:
        sent = to_microseconds(value)
        if sent > self.latest:
            yield violations.timestamp_future(field)
        if sent < self.earliest:
            yield violations.timestamp_too_old(field, self.limits.backfill / HOUR)

    def address(self, field: str, value: str) -> Iterator[Violation]:
        """An empty text counts as null."""
        if value and not is_address(value):
            yield violations.invalid_format(field, "an IPv4 or IPv6 address")

    def device_address(self, field: str, value: str) -> Iterator[Violation]:
        if value and not is_address(value):
            yield violations.invalid_format(field, "an IPv4 or IPv6 address")
        elif value and not is_public_address(value):
            yield violations.private_address(field)

    def headers(self, field: str, value: Mapping[str, str | list[str]]) -> Iterator[Violation]:
        for name, content in value.items():
            if len(name) + len(join_values(content)) > MAX_HEADER:
                place = header_path(field, name)
                yield violations.too_long(place, MAX_HEADER, "characters, its name included")

    def metadata(self, field: str, value: dict[str, Any]) -> Iterator[Violation]:
        if is_deeper(value, self.limits.metadata_depth):
            allowed = f"nested at most {self.limits.metadata_depth} deep"
            yield violations.out_of_range(field, allowed)

    def transactions_by_status(self, field: str, sent: SentObject) -> Iterator[Violation]:
        """Of a payment or an update."""
        attempts = member_of(sent, "transactions", ())
        status = member_of(sent, "status")
        if attempts is INVALID:
            return
        if not attempts and status in SETTLED:
            yield violations.required_by_status(f"{field}.transactions", status)
        seen = set()
        for index, attempt in enumerate(attempts):
            identifier = None if attempt is INVALID else member_of(attempt, "id")
            if not isinstance(identifier, str):
                continue
            if identifier in seen:
                place = f"{field}.transactions[{index}].id"
                yield violations.taken(place, "these `transactions`")
            seen.add(identifier)

    def response_code_by_status(self, field: str, sent: SentObject) -> Iterator[Violation]:
        """Of a transaction."""
        connector, status = member_of(sent, "connector", INVALID), member_of(sent, "status")
        if (
            status in SETTLED
            and connector is not INVALID
            and not member_of(connector, "response_code")
        ):
            place = f"{field}.connector.response_code"
            yield violations.required_by_status(place, status)


def rules_at(now: int, limits: Limits) -> FieldRules:
    """The rules for a request that arrives at `now`, in µs since the epoch."""
    return FieldRules(limits, now - limits.backfill, now + limits.clock_skew)


def member_of(sent: SentObject, name: str, otherwise: Any = None) -> Any:
    """The member `name`, `otherwise` where it was not sent."""
    if isinstance(sent, Struct):
        return getattr(sent, name, otherwise)
    return sent.get(name, otherwise)


def is_digits(text: str, length: int) -> bool:
    return len(text) == length and text.isdigit() and text.isascii()


def header_path(field: str, name: str) -> str:
    """The header itself when its name is fit to be shown."""
    return f"{field}.{name}" if _is_printable(name) else field


def printable_name(name: str) -> str:
    """A member's name as far as it is fit to be shown."""
    return name if _is_printable(name) else "…"


def _is_printable(name: str) -> bool:
    return len(name) <= MAX_TEXT and name.isprintable()


def join_values(content: str | list[str]) -> str:
    """A header's value, an array of values as HTTP joins them."""
    return content if isinstance(content, str) else ", ".join(content)


def is_deeper(value: dict[str, Any] | list[Any], levels: int) -> bool:
    """Whether objects and arrays are nested more than `levels` deep in a JSON value."""
    if levels == 0:
        return True
    for member in value.values() if isinstance(value, dict) else value:
        if type(member) in _CONTAINERS and is_deeper(member, levels - 1):
            return True
    return False
