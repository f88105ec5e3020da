"""Read query and path parameters; each error names its parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tollkeeper.api.http.errors import invalid_at, unknown_path
from tollkeeper.api.http.request import Exchange
from tollkeeper.engine.folder_key import NameUse, Spot
from tollkeeper.engine.lists.values import read_instant
from tollkeeper.engine.search.filters import read_moment

PAGE = 100
MAX_PAGE = 500
_DIGITS = 18
_FLAGS = {"true": True, "1": True, "false": False, "0": False}

Choice = TypeVar("Choice", bound=str)


def read_place(request: Exchange, name: str, text: str | None) -> int | None:
    """Read a cursor from an earlier page of the account. Raises `Problem` 422."""
    if text is None:
        return None
    spot = request.engine.folder_key.spot_of(NameUse.CURSOR, request.key.account, text)
    if spot is None:
        raise invalid_at(
            name, "invalid_value", "this is not what an earlier answer gave to go on from"
        )
    return spot.sequence


def show_place(request: Exchange, cursor: int | None) -> str | None:
    """Write a cursor as `read_place` reads it; None after the last page."""
    return None if cursor is None else name_place(request, cursor)


def name_place(request: Exchange, sequence: int) -> str:
    """A place in the journal in the form that `read_place` takes."""
    return request.engine.folder_key.name_of(NameUse.CURSOR, request.key.account, Spot(sequence))


def read_limit(text: str | None) -> int:
    """Read the most items of a page. Raises `Problem` 422."""
    if text is None:
        return PAGE
    message = f"a page holds 1 to {MAX_PAGE} items"
    limit = _whole_number("limit", text, message)
    if not 1 <= limit <= MAX_PAGE:
        raise invalid_at("limit", "out_of_range", message)
    return limit


def read_since(request: Exchange, text: str | None) -> int:
    """Read the parameter `since` in µs, 0 by default. Raises `Problem` 422."""
    return read_moment_at("since", text, request.engine.clock()) or 0


def read_moment_at(name: str, text: str | None, now: int) -> int | None:
    """Read an instant, or a span back from `now` (µs), in µs. Raises `Problem` 422."""
    try:
        return None if text is None else read_moment(text, now)
    except ValueError as error:
        raise invalid_at(name, "invalid_value", str(error)) from None


def read_time(name: str, text: str) -> int:
    """Read an ISO 8601 time in µs. Raises `Problem` 422."""
    try:
        return read_instant(text)
    except ValueError as error:
        raise invalid_at(name, "invalid_format", str(error)) from None


def read_choice(name: str, text: str | None, choices: Sequence[Choice]) -> Choice | None:
    """Read one of `choices`. Raises `Problem` 422."""
    if text is None:
        return None
    for choice in choices:
        if choice == text:
            return choice
    known = ", ".join(f"`{choice}`" for choice in choices)
    raise invalid_at(name, "invalid_value", f"this is one of {known}")


def read_flag(name: str, text: str | None) -> bool:
    """Read `true` or `false`, false by default. Raises `Problem` 422."""
    if text is not None and text not in _FLAGS:
        raise invalid_at(name, "invalid_value", f"`{name}` is `true` or `false`")
    return text is not None and _FLAGS[text]


def read_count(name: str, text: str | None) -> int | None:
    """Read a whole number from 0. Raises `Problem` 422."""
    return None if text is None else _whole_number(name, text, f"`{name}` is a whole number")


def read_version_number(text: str) -> int:
    """Read a version number in a path. Raises `Problem` 404."""
    if not _is_whole(text):
        raise unknown_path()
    return int(text)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _whole_number(name: str, text: str, message: str) -> int:
    if not _is_whole(text):
        raise invalid_at(name, "invalid_value", message)
    return int(text)
