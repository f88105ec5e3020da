"""Addresses read and told apart as the standard library's `ipaddress` does."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.intake.addresses import (
    PRIVATE_NETWORKS,
    address_number,
    is_address,
    is_private,
)

EDGES = [
    network.network_address + offset
    for network in PRIVATE_NETWORKS
    for offset in (0, network.num_addresses - 1, network.num_addresses)
]
LAST_32_BITS = [ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")]
ADDRESSES = st.ip_addresses() | st.sampled_from(EDGES)


@given(ADDRESSES)
def test_an_address_is_private_when_a_private_network_holds_it(
    address: IPv4Address | IPv6Address,
) -> None:
    number = address_number(str(address))
    assert number is not None
    assert is_private(number) == any(map(in_private_network, meanings(address)))


@given(st.ip_addresses(v=4) | st.sampled_from([each for each in EDGES if each.version == 4]))
def test_an_ipv4_address_is_as_private_inside_an_ipv6_address(address: IPv4Address) -> None:
    number = int(address)
    for carrying in (
        IPv6Address((0x64FF9B << 96) + number),
        IPv6Address((0x64FF9B0001 << 80) + (0xABCDEF << 32) + number),
        IPv6Address((0x2002 << 112) + (number << 80) + 1),
        IPv6Address((0x20010000 << 96) + (0xCB007107 << 64) + (number ^ 0xFFFFFFFF)),
    ):
        found = address_number(str(carrying))
        assert found is not None
        assert is_private(found) == in_private_network(address), carrying


def in_private_network(address: IPv4Address | IPv6Address) -> bool:
    return any(
        address in network for network in PRIVATE_NETWORKS if network.version == address.version
    )


def meanings(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, and the IPv4 address that the standard library finds in it."""
    if isinstance(address, IPv4Address):
        return [address]
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    carried = [
        address.ipv4_mapped,
        address.sixtofour,
        teredo and teredo[1],
        last if any(address in network for network in LAST_32_BITS) else None,
    ]
    return [address, *(each for each in carried if each is not None)]


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_the_same_as_its_ipv4_address(address: IPv4Address) -> None:
    assert address_number(f"::ffff:{address}") == address_number(str(address))


@given(st.text(max_size=20) | st.text("0123456789abcdef:.", max_size=20))
def test_text_is_an_address_when_the_standard_library_reads_it(text: str) -> None:
    try:
        expected = "%" not in str(ip_address(text))
    except ValueError:
        expected = False
    assert is_address(text) == expected
