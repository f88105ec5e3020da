"""IP addresses as 128-bit integers, an IPv4 address as its IPv4-mapped IPv6 address."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_pton

LONGEST = 45
"""Characters in the longest spelling of an address."""

_IPV4_BYTES = 4
_MAPPED = 0xFFFF << 32
_LAST_32 = 0xFFFF_FFFF
_NAT64_OR_COMPATIBLE = frozenset({0x0064_FF9B << 64, 0})
"""The first 96 bits of `64:ff9b::/96` and `::/96`."""
_LOCAL_NAT64 = 0x0064_FF9B_0001
_SIX_TO_FOUR = 0x2002
_TEREDO = 0x2001_0000

PRIVATE_NETWORKS = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/32",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::/128",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
    )
)
"""docs/api.md, "Validation": private, unique local, loopback, link-local, shared, unspecified."""


def _span(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    base = _MAPPED if network.version == 4 else 0
    return base + int(network.network_address), base + int(network.broadcast_address) + 1


# Private spans as ascending bounds: within one when an odd number of them lies at or below.
_BOUNDS = [bound for span in sorted(map(_span, PRIVATE_NETWORKS)) for bound in span]


def address_number(text: str) -> int | None:
    """The address as an integer of 128 bits, or None when `text` is no IPv4 or IPv6 address."""
    return _number(text) if len(text) <= LONGEST else None


def is_private(number: int) -> bool:
    """Whether the address, or the IPv4 address embedded in it, is not a public one."""
    if _in_private_network(number):
        return True
    carried = carried_ipv4(number)
    return carried is not None and _in_private_network(carried)


def carried_ipv4(number: int) -> int | None:
    """The IPv4 address embedded in a NAT64, 6to4, Teredo or IPv4-compatible address, else None.

    NAT64 is RFC 6052's prefix and RFC 8215's, with the IPv4 address in the last 32 bits; 6to4 is
    RFC 3056's, Teredo RFC 4380's, where the client's address has its bits inverted.
    """
    last = number & _LAST_32
    if number >> 32 in _NAT64_OR_COMPATIBLE or number >> 80 == _LOCAL_NAT64:
        return _MAPPED | last
    if number >> 112 == _SIX_TO_FOUR:
        return _MAPPED | (number >> 80 & _LAST_32)
    if number >> 96 == _TEREDO:
        return _MAPPED | (last ^ _LAST_32)
    return None


def _in_private_network(number: int) -> bool:
    return bisect_right(_BOUNDS, number) % 2 == 1


# Cached, since an address is read several times for a payment, and a person pays more than once. No
# text is longer than LONGEST: `address_number` checks it, for the others the types of the fields do.
@lru_cache(maxsize=4096)
def _number(text: str) -> int | None:
    try:
        packed = inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, ValueError):
        return None
    return int.from_bytes(packed) | (_MAPPED if len(packed) == _IPV4_BYTES else 0)


@lru_cache(maxsize=4096)
def is_address(text: str) -> bool:
    """Whether `text`, of at most LONGEST characters, is an address."""
    return _number(text) is not None


@lru_cache(maxsize=4096)
def public_number(text: str) -> int | None:
    """`address_number` of a `text` of at most LONGEST characters, None for a private address, too."""
    number = _number(text)
    return None if number is None or is_private(number) else number


def is_public_address(text: str) -> bool:
    """Whether `text`, of at most LONGEST characters, is an address, and not a private one."""
    return public_number(text) is not None
