"""The values of lists and columns: from JSON or text, and back, as `grammar/types.py` carries them.

Every reader raises `ValueError` with words for the author. The text of a value is canonical: two
texts of one value are shown, stored and found alike.
"""

from __future__ import annotations

import ipaddress
import re
from decimal import Context, Decimal
from functools import lru_cache
from socket import AF_INET, inet_ntop

from tollkeeper.engine.instants import read_iso_8601, show_instant, to_microseconds
from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.engine.lists.spec import ColumnType
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import METADATA_LIMIT, METADATA_SCALE

MAX_VALUE_TEXT = 256
IP_BITS = 128
_MAPPED = 0xFFFF << 32
_IPV4_PREFIX = 96
# More digits than `_NUMBER` accepts, so that no multiplication rounds.
_EXACT = Context(prec=200)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LENGTH = re.compile(r"[0-9]{1,3}")


def read_value(type_: ColumnType, written: object) -> Value:
    """A value of a list or column, from JSON or from text."""
    match type_:
        case "string":
            return read_string(written)
        case "number":
            return read_number(written)
        case "boolean":
            return _read_boolean(written)
        case "instant":
            return read_instant(written)
        case "ip":
            return _read_address(written)
        case choices:
            text = read_string(written)
            if text not in choices:
                known = ", ".join(f"`{choice}`" for choice in choices)
                raise ValueError(f"`{text}` is not one of {known}")
            return text


def show_value(type_: ColumnType, value: Value) -> str:
    """The canonical text of a carried value."""
    match type_:
        case "number":
            return f"{Decimal(int(value)).scaleb(-METADATA_SCALE).normalize():f}"
        case "boolean":
            return "true" if value else "false"
        case "instant":
            return show_instant(int(value))
        case "ip":
            return show_network(int(value), IP_BITS)
        case _:
            return str(value)


def read_string(written: object) -> str:
    """Text of 1 to 256 characters."""
    if not isinstance(written, str):
        raise ValueError("this is a string")
    if not written:
        raise ValueError("a value may not be empty")
    if len(written) > MAX_VALUE_TEXT:
        raise ValueError(f"a value has at most {MAX_VALUE_TEXT} characters")
    if not is_text(written):
        raise ValueError("a value is valid UTF-8")
    return written


def is_text(written: str) -> bool:
    """Whether the string can be written as UTF-8."""
    return written.isascii() or not _SURROGATE.search(written)


def read_number(written: object) -> int:
    """A decimal, times 10 ** 6: at most six places, at most 10 ** 12 in size."""
    if isinstance(written, bool) or not isinstance(written, str | int | float | Decimal):
        raise ValueError("this is a number")
    if not isinstance(written, int):
        written = str(written)
        if not _NUMBER.fullmatch(written):
            raise ValueError(f"`{_short(written)}` is not a number")
    number = Decimal(written)
    if abs(number) > METADATA_LIMIT:
        raise ValueError(f"a number is at most {METADATA_LIMIT} in size")
    scaled = _EXACT.scaleb(number, METADATA_SCALE)
    if scaled != int(scaled):
        raise ValueError(f"a number has at most {METADATA_SCALE} decimals")
    return int(scaled)


def read_instant(written: object) -> int:
    """Text of ISO 8601, as µs since the epoch."""
    if not isinstance(written, str):
        raise ValueError('a time is a string such as "2030-01-31T12:00:00Z"')
    try:
        return to_microseconds(read_iso_8601(written))
    except ValueError:
        message = f'`{_short(written)}` is not a time such as "2030-01-31T12:00:00Z"'
        raise ValueError(message) from None


def read_network(written: object) -> tuple[int, int]:
    """An address or network: its first address, and the length of its prefix of 128 bits."""
    if not isinstance(written, str):
        raise ValueError("an address or network is a string")
    text, slash, length = written.partition("/")
    first = address_number(text)
    most = IP_BITS if ":" in text else IP_BITS - _IPV4_PREFIX
    if first is None or (slash and not _LENGTH.fullmatch(length)) or int(length or 0) > most:
        raise ValueError(f"`{_short(written)}` is not an IP address or network")
    bits = IP_BITS - most + int(length) if slash else IP_BITS
    spare = IP_BITS - bits
    network = first >> spare << spare
    if network != first:
        meant = show_network(network, bits)
        raise ValueError(f"`{written}` has bits set past its prefix, did you mean `{meant}`?")
    return first, bits


def show_network(first: int, bits: int) -> str:
    """The text of an address (of 128 bits), or of a network."""
    if bits >= _IPV4_PREFIX and first >> 32 == _MAPPED >> 32:
        address = inet_ntop(AF_INET, (first & 0xFFFFFFFF).to_bytes(4))
        length = bits - _IPV4_PREFIX
    else:
        address = _show_ipv6(first)
        length = bits
    return address if bits == IP_BITS else f"{address}/{length}"


@lru_cache(256)
def _show_ipv6(address: int) -> str:
    """Cached: the wider networks that hold an IPv4 address are the same for most addresses."""
    return str(ipaddress.IPv6Address(address))


def _read_boolean(written: object) -> bool:
    if isinstance(written, bool):
        return written
    if not isinstance(written, str) or written not in ("true", "false"):
        raise ValueError("this is true or false")
    return written == "true"


def _read_address(written: object) -> int:
    first, bits = read_network(written)
    if bits != IP_BITS:
        raise ValueError(f"`{written}` is a network, not an address")
    return first


def _short(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:63]}…"
