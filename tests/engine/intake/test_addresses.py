"""Addresses read and told apart as the standard library's `ipaddress` does."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

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
ADDRESSES = st.ip_addresses() | st.sampled_from(EDGES)


@given(ADDRESSES)
def test_an_address_is_private_when_a_private_network_holds_it(
    address: IPv4Address | IPv6Address,
) -> None:
    number = address_number(str(address))
    assert number is not None
    unwrapped = (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address
    assert is_private(number) == any(
        unwrapped in network for network in PRIVATE_NETWORKS if network.version == unwrapped.version
    )


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
