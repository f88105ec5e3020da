"""Violations: the error types that docs/api.md, "Errors", lists, and their messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, TypeAlias

from msgspec import Struct

from tollkeeper.grammar.words import shorten

ViolationType: TypeAlias = Literal[
    "missing",
    "null",
    "unknown_member",
    "invalid_type",
    "invalid_value",
    "invalid_format",
    "too_long",
    "out_of_range",
    "precision",
    "timestamp_future",
    "timestamp_too_old",
    "private_address",
    "taken",
    "required_by_status",
    "malformed_json",
    "unknown_event_type",
    "inactive_event_type",
    "invalid_credentials",
    "forbidden",
    "not_found",
    "method_not_allowed",
    "unsupported_media_type",
    "conflict",
    "idempotency_mismatch",
    "too_large",
    "too_many_requests",
    "unavailable",
    "timeout",
    "malformed_request",
    "internal_error",
]

BODY = "body"
MAX_LISTED = 100
_MOST_NAMED = 12
"""The most choices that are all named; of more, `_NEAREST` of the first `_COMPARED`."""
_NEAREST = 3
_COMPARED = 500
_LONGEST = 64
"""How much of a choice is named, in characters."""


class Violation(Struct, frozen=True, gc=False):
    """One item of `errors`: the place in the request, the stable type, and the words.

    `type` is a `ViolationType`, or the code of a diagnostic where the request holds a rule's text.
    """

    field: str
    type: str
    message: str


def missing(field: str) -> Violation:
    return Violation(field, "missing", f"{_name(field)} is required")


def null(field: str) -> Violation:
    return Violation(field, "null", f"{_name(field)} must not be null")


def unknown_member(field: str) -> Violation:
    return Violation(field, "unknown_member", f"there is nothing named {_name(field)} here")


def invalid_type(field: str, expected: str) -> Violation:
    return Violation(field, "invalid_type", f"{_name(field)} must be {expected}")


def empty(field: str) -> Violation:
    return Violation(field, "invalid_value", f"{_name(field)} must not be empty")


def not_one_of(field: str, choices: Sequence[str], sent: str = "") -> Violation:
    """Names the choices; of very many, those next to `sent` in the alphabet, which begin like it."""
    named, count = choices, ""
    if len(choices) > _MOST_NAMED:
        ordered = sorted(islice(choices, _COMPARED), key=str.casefold)
        place = bisect_left(ordered, sent.casefold(), key=str.casefold)
        first = max(0, min(place - 1, len(ordered) - _NEAREST))
        named, count = ordered[first : first + _NEAREST], f"{len(choices)} values, such as "
    words = "`, `".join(shorten(each, _LONGEST) for each in named)
    return Violation(field, "invalid_value", f"{_name(field)} must be one of {count}`{words}`")


def unknown_code(field: str, standard: str) -> Violation:
    return Violation(field, "invalid_value", f"{_name(field)} must be a code of {standard}")


def invalid_format(field: str, expected: str) -> Violation:
    return Violation(field, "invalid_format", f"{_name(field)} must be {expected}")


def too_long(field: str, limit: int, unit: str) -> Violation:
    return Violation(field, "too_long", f"{_name(field)} must have at most {limit} {unit}")


def out_of_range(field: str, allowed: str) -> Violation:
    return Violation(field, "out_of_range", f"{_name(field)} must be {allowed}")


def precision(field: str) -> Violation:
    return Violation(field, "precision", f"{_name(field)} must have at most two decimals")


def timestamp_future(field: str) -> Violation:
    return Violation(field, "timestamp_future", f"{_name(field)} must not be in the future")


def timestamp_too_old(field: str, hours: float) -> Violation:
    message = f"{_name(field)} must not be older than {hours:g} hours"
    return Violation(field, "timestamp_too_old", message)


def private_address(field: str) -> Violation:
    return Violation(field, "private_address", f"{_name(field)} must not be a private address")


def taken(field: str, where: str) -> Violation:
    return Violation(field, "taken", f"{_name(field)} is already used in {where}")


def required_by_status(field: str, status: str) -> Violation:
    message = f"{_name(field)} is required when `status` is `{status}`"
    return Violation(field, "required_by_status", message)


def empty_body() -> Violation:
    return Violation(BODY, "malformed_json", f"the {BODY} is empty")


def malformed_json(reason: str) -> Violation:
    return Violation(BODY, "malformed_json", f"the body is not JSON: {reason}")


def cap_violations(violations: list[Violation], *, all_found: bool = True) -> tuple[Violation, ...]:
    """At most a page of violations, then the number of further ones, as far as they were searched."""
    more = len(violations) - MAX_LISTED
    if more <= 0:
        return tuple(violations)
    count = f"{more}" if all_found else f"at least {more}"
    rest = Violation(BODY, "invalid_value", f"{count} more violations are not listed")
    return (*violations[:MAX_LISTED], rest)


def describe_violations(violations: Iterable[Violation]) -> str:
    """All of them on one line."""
    return "; ".join(f"`{each.field}`: {each.message}" for each in violations)


def _name(field: str) -> str:
    return f"the {BODY}" if field == BODY else f"`{field[field.rfind('.') + 1 :]}`"
