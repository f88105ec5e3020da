"""The rules of fields that a type cannot express, under the names that `payment.py` gives them.

Each method says what is wrong with one value of the right type at `field`. API.md, "Validation"
and the specification's field tables are their source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from tollkeeper.engine import violations
from tollkeeper.engine.addresses import address_number, is_address, is_private
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.limits import HOUR, Limits
from tollkeeper.engine.payment import MAX_HEADER
from tollkeeper.engine.violations import Violation

_CONTAINERS = (dict, list)

INVALID: Final = object()
"""Stands for a value that a violation was found for."""

SETTLED = frozenset({"succeeded", "declined"})
"""The statuses of a payment that need transactions, of a transaction that need an answer."""


class FieldRules(Struct, frozen=True):
    """The rules of one request; its timestamps lie within `earliest` and `latest`, in µs."""

    limits: Limits
    earliest: int
    latest: int

    def is_within(self, instant: datetime) -> bool:
        """Whether `instant` is neither in the future nor too old."""
        return self.earliest <= to_microseconds(instant) <= self.latest

    def amount(self, field: str, value: float) -> Iterator[Violation]:
        if not has_two_decimals(value):
            yield violations.precision(field)

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
        at = to_microseconds(value)
        if at > self.latest:
            yield violations.timestamp_future(field)
        if at < self.earliest:
            yield violations.timestamp_too_old(field, self.limits.backfill / HOUR)

    def address(self, field: str, value: str) -> Iterator[Violation]:
        """An empty text counts as null."""
        if value and not is_address(value):
            yield violations.invalid_format(field, "an IPv4 or IPv6 address")

    def device_address(self, field: str, value: str) -> Iterator[Violation]:
        yield from self.address(field, value)
        number = address_number(value)
        if number is not None and is_private(number):
            yield violations.private_address(field)

    def headers(self, field: str, value: Mapping[str, str | list[str]]) -> Iterator[Violation]:
        for name, content in value.items():
            if len(name) + len(joined(content)) > MAX_HEADER:
                yield violations.too_long(field, MAX_HEADER, "characters in each header")
                return

    def metadata(self, field: str, value: dict[str, Any]) -> Iterator[Violation]:
        if is_deeper(value, self.limits.metadata_depth):
            allowed = f"nested at most {self.limits.metadata_depth} deep"
            yield violations.out_of_range(field, allowed)

    def transactions_by_status(self, field: str, values: Mapping[str, Any]) -> Iterator[Violation]:
        """A payment's or an update's values, INVALID where a violation was found."""
        attempts = values.get("transactions", [])
        if attempts == [] and values.get("status") in SETTLED:
            yield violations.required_by_status(f"{field}.transactions", values["status"])
        seen = set()
        for index, attempt in enumerate(attempts if isinstance(attempts, list) else []):
            identifier = attempt.get("id") if isinstance(attempt, dict) else None
            if not isinstance(identifier, str):
                continue
            if identifier in seen:
                place = f"{field}.transactions[{index}].id"
                yield violations.taken(place, "these `transactions`")
            seen.add(identifier)

    def response_code_by_status(self, field: str, values: Mapping[str, Any]) -> Iterator[Violation]:
        """A transaction's values, INVALID where a violation was found."""
        connector = values.get("connector")
        if (
            values.get("status") in SETTLED
            and isinstance(connector, dict)
            and not connector.get("response_code")
        ):
            place = f"{field}.connector.response_code"
            yield violations.required_by_status(place, values["status"])


def rules_at(now: int, limits: Limits) -> FieldRules:
    """The rules for a request that arrives at `now`, in µs since the epoch."""
    return FieldRules(limits, now - limits.backfill, now + limits.clock_skew)


def has_two_decimals(amount: float) -> bool:
    """Whether `amount` is the double nearest to some decimal with at most two places."""
    return round(amount * 100) / 100 == amount


def is_digits(text: str, length: int) -> bool:
    return len(text) == length and text.isdigit() and text.isascii()


def joined(content: str | list[str]) -> str:
    """A header's value, an array of values as HTTP joins them."""
    return content if isinstance(content, str) else ", ".join(content)


def is_deeper(value: dict[str, Any] | list[Any], levels: int) -> bool:
    """Whether objects and arrays are nested more than `levels` deep in a JSON value."""
    if levels == 0:
        return True
    for member in value.values() if isinstance(value, dict) else value:
        if isinstance(member, _CONTAINERS) and is_deeper(member, levels - 1):
            return True
    return False
