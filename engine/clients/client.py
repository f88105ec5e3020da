"""A client as its headers show it, read once for each set of headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tollkeeper.engine.clients.agreement import CLIENT_HINTS, FETCH_METADATA, agree, brands
from tollkeeper.engine.clients.products import Kind
from tollkeeper.engine.clients.user_agent import claim

READ = (
    "user-agent",
    "accept",
    "accept-encoding",
    "accept-language",
    *CLIENT_HINTS,
    *FETCH_METADATA,
)
# Of a value, and of most header sets as a whole; no honest value is longer.
LENGTH = 1024


class Client(Struct, frozen=True, gc=False):
    """What a client is, by its headers (LANGUAGE.md, "Derived fields").

    `browser` is a browser's family, such as "chrome" or "safari". `os` is a system, such as
    "windows" or "ios". `consistent` is false when two headers contradict each other.
    """

    kind: Annotated[Kind, Meta(description="What the client is.")]
    browser: Annotated[str | None, Meta(description="Browser family, such as `chrome`.")]
    os: Annotated[str | None, Meta(description="Operating system, such as `windows`.")]
    consistent: Annotated[bool, Meta(description="Whether the headers agree with each other.")]


class Clients:
    """`client`, which keeps what the `capacity` header sets used last gave.

    A kept set is at most 12 Ki characters, and usually a few hundred.
    """

    def __init__(self, capacity: int = 2048) -> None:
        self._read = lru_cache(maxsize=capacity)(_read)

    def __call__(self, headers: Mapping[str, str] | None) -> Client | None:
        """As `client`."""
        return self._read(_header_set(headers)) if headers else None


def client(headers: Mapping[str, str] | None) -> Client | None:
    """The client that sent `headers`, named in any case and order; None when there are none.

    Any text is taken, in time bounded by what is read of it.
    """
    return _read(_header_set(headers)) if headers else None


def _header_set(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values that are read, empty for a header not sent, in the order of READ."""
    found = {name.lower(): value for name, value in headers.items()}
    if len(found) < len(headers):
        # One name in two spellings: the greater value counts, whatever their order.
        found = {name.lower(): value for name, value in sorted(headers.items(), key=itemgetter(1))}
    values = tuple(map(found.get, READ, repeat("")))
    # One joined length is the cheapest look at all of them.
    return values if len("".join(values)) <= LENGTH else tuple(value[:LENGTH] for value in values)


def _read(values: tuple[str, ...]) -> Client:
    sent = {
        name: value.encode("ascii", "replace").decode("ascii")
        for name, value in zip(READ, values, strict=True)
        if value
    }
    claimed = claim(sent.get("user-agent", ""))
    consistent = agree(claimed, sent)
    if any(brand == "HeadlessChrome" for brand, _ in brands(sent)):
        claimed = replace(claimed, kind="headless")
    return Client(claimed.kind, claimed.browser, claimed.os, consistent)
