"""A client as its headers show it, read once for each set of headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

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
# The most characters that are read of a value; most whole header sets are shorter.
HEADER_LENGTH = 1024

try:
    from tollkeeper.engine.facts.clients._headers import values_of
except ImportError:  # where C can't be built

    def values_of(
        headers: Mapping[str, str], names: tuple[str, ...], longest: int, /
    ) -> tuple[str | None, ...]:
        """The value of each of the `names`, None where it was not sent.

        One name in two spellings: the greater value counts, whatever their order. Values that have
        more than `longest` characters together have no more than that each.
        """
        values: dict[str, str] = {}
        for sent, value in headers.items():
            name = sent.lower()
            if name in names:
                values[name] = max(value, values.get(name, ""))
        if len("".join(values.values())) > longest:
            values = {name: value[:longest] for name, value in values.items()}
        return tuple(map(values.get, names))


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
    """Reads clients as `read_client` does, and keeps those of the last `capacity` header sets.

    A set takes at most 12 Ki characters, and usually a few hundred.
    """

    def __init__(self, capacity: int = 2048) -> None:
        self._read = lru_cache(maxsize=capacity)(_read)

    def __call__(self, headers: Mapping[str, str] | None) -> Client | None:
        """As `read_client`."""
        return self._read(values_of(headers, CLIENT_HEADERS, HEADER_LENGTH)) if headers else None


def read_client(headers: Mapping[str, str] | None) -> Client | None:
    """The client that sent `headers`, whatever the case and order of their names; None without any.

    Any text is accepted. The time is bounded: no value is read beyond `HEADER_LENGTH` characters.
    """
    return _read(values_of(headers, CLIENT_HEADERS, HEADER_LENGTH)) if headers else None


def _read(values: tuple[str | None, ...]) -> Client:
    sent = {
        name: value.encode("ascii", "replace").decode("ascii")
        for name, value in zip(CLIENT_HEADERS, values, strict=True)
        if value
    }
    claimed = claim(sent.get("user-agent", ""))
    consistent = is_consistent(claimed, sent)
    if any(brand == "HeadlessChrome" for brand, _ in brands(sent)):
        claimed = replace(claimed, kind="headless")
    return Client(claimed.kind, claimed.browser, claimed.os, consistent)
