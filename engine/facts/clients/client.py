"""A client as its headers show it, read once for each set of headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from tollkeeper.engine.facts.clients.agreement import (
    CLIENT_HINTS,
    FETCH_METADATA,
    brands,
    is_consistent,
)
from tollkeeper.engine.facts.clients.products import ClientKind
from tollkeeper.engine.facts.clients.user_agent import claim

CLIENT_HEADERS = (
    "user-agent",
    "accept",
    "accept-encoding",
    "accept-language",
    *CLIENT_HINTS,
    *FETCH_METADATA,
)
# Of a value, and of most header sets as a whole; no honest value is longer.
HEADER_LENGTH = 1024
# Characters in the names of a header set whose reading is kept.
NAMES_LENGTH = 2048

_Names = tuple[str, ...]


class _Places(NamedTuple):
    """The headers that are read, in the order of `CLIENT_HEADERS`, the names under which each was
    sent, and what picks their values where each was sent under one."""

    sent: _Names
    spellings: tuple[_Names, ...]
    pick: Callable[[Mapping[str, str]], tuple[str, ...]] | None


class Client(Struct, frozen=True, gc=False):
    """What a client is, by its headers (docs/language.md, "Derived fields").

    `browser` is a browser's family, such as "chrome" or "safari". `os` is a system, such as
    "windows" or "ios". `consistent` is false when two headers contradict each other.
    """

    kind: Annotated[ClientKind, Meta(description="What the client is.")]
    browser: Annotated[str | None, Meta(description="Browser family, such as `chrome`.")]
    os: Annotated[str | None, Meta(description="Operating system, such as `windows`.")]
    consistent: Annotated[bool, Meta(description="Whether the headers agree with each other.")]


class Clients:
    """`client`, which keeps what the `capacity` header sets used last gave.

    A kept set is at most 12 Ki characters, and usually a few hundred. Where to find what is read
    is kept for sets of names, at most 2 Ki characters each.
    """

    def __init__(self, capacity: int = 2048) -> None:
        self._read = lru_cache(maxsize=capacity)(_read)
        self._places = lru_cache(maxsize=capacity)(_header_positions)

    def __call__(self, headers: Mapping[str, str] | None) -> Client | None:
        """As `client`."""
        if not headers:
            return None
        names = tuple(headers)
        places = (self._places if len("".join(names)) <= NAMES_LENGTH else _header_positions)(names)
        return self._read(*_header_set(headers, places))


def client(headers: Mapping[str, str] | None) -> Client | None:
    """The client that sent `headers`, named in any case and order; None when there are none.

    Any text is taken, in time bounded by what is read of it.
    """
    return _read(*_header_set(headers, _header_positions(tuple(headers)))) if headers else None


def _header_positions(names: _Names) -> _Places:
    """Where those headers are that are read."""
    found: dict[str, _Names] = {}
    for name in names:
        low = name.lower()
        found[low] = (*found.get(low, ()), name)
    sent = tuple(name for name in CLIENT_HEADERS if name in found)
    spellings = tuple(found[name] for name in sent)
    # Of several, `itemgetter` gives a tuple.
    is_plain = len(sent) > 1 and all(len(each) == 1 for each in spellings)
    return _Places(sent, spellings, itemgetter(*chain(*spellings)) if is_plain else None)


def _header_set(headers: Mapping[str, str], places: _Places) -> tuple[_Names, tuple[str, ...]]:
    """The headers that are read, and their values."""
    sent, spellings, pick = places
    values: tuple[str, ...]
    if pick is not None:
        values = pick(headers)
    else:
        # One name in two spellings: the greater value counts, whatever their order.
        values = tuple(max(map(headers.__getitem__, names)) for names in spellings)
    # One joined length is the cheapest look at all of them.
    if len("".join(values)) > HEADER_LENGTH:
        values = tuple(value[:HEADER_LENGTH] for value in values)
    return sent, values


def _read(names: _Names, values: tuple[str, ...]) -> Client:
    sent = {
        name: value.encode("ascii", "replace").decode("ascii")
        for name, value in zip(names, values, strict=True)
        if value
    }
    claimed = claim(sent.get("user-agent", ""))
    consistent = is_consistent(claimed, sent)
    if any(brand == "HeadlessChrome" for brand, _ in brands(sent)):
        claimed = replace(claimed, kind="headless")
    return Client(claimed.kind, claimed.browser, claimed.os, consistent)
