from __future__ import annotations

import ipaddress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.lists.values import read_network, read_value, show_network, show_value

MAPPED = 0xFFFF << 32
TYPES = ["string", "number", "boolean", "instant", "ip", ("credit", "debit")]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("type_", "given", "value", "text"),
    [
        ("string", "Ana", "Ana", "Ana"),
        (("credit", "debit"), "debit", "debit", "debit"),
        ("number", 42, 42_000_000, "42"),
        ("number", 0.1, 100_000, "0.1"),
        ("number", Decimal("1e2"), 100_000_000, "100"),
        ("number", "-12.50", -12_500_000, "-12.5"),
        ("number", "0.000001", 1, "0.000001"),
        ("number", -0.0, 0, "0"),
        ("number", "1000000000000", 10**18, "1000000000000"),
        ("boolean", True, True, "true"),
        ("boolean", "false", False, "false"),
        ("instant", "1970-01-01T01:00:00+01:00", 0, "1970-01-01T00:00:00Z"),
        ("instant", "1970-01-01T00:00:00.25Z", 250_000, "1970-01-01T00:00:00.250000Z"),
        ("ip", "203.0.113.7", MAPPED | 0xCB007107, "203.0.113.7"),
        ("ip", "::ffff:203.0.113.7", MAPPED | 0xCB007107, "203.0.113.7"),
        ("ip", "2001:DB8:0::1", 0x20010DB8 << 96 | 1, "2001:db8::1"),
    ],
)
def test_a_value_is_carried_and_shown_in_one_form(type_, given, value, text):
    assert read_value(type_, given) == value
    assert show_value(type_, value) == text


@pytest.mark.parametrize(
    ("type_", "given", "message"),
    [
        ("string", 7, "this is a string"),
        ("string", "", "a value may not be empty"),
        ("string", "x" * 257, "a value has at most 256 characters"),
        ("string", "\ud800", "a value is valid UTF-8"),
        (("credit", "debit"), "cash", "`cash` is not one of `credit`, `debit`"),
        ("number", True, "this is a number"),
        ("number", "1,5", "`1,5` is not a number"),
        ("number", "١", "`١` is not a number"),
        ("number", "nan", "`nan` is not a number"),
        ("number", "1e99", "a number is at most 1000000000000 in size"),
        pytest.param("number", 10**5000, "a number is at most 1000000000000 in size", id="huge"),
        ("number", "1." + "0" * 38 + "1", "a number has at most 6 decimals"),
        ("number", "0.0000001", "a number has at most 6 decimals"),
        ("boolean", "yes", "this is true or false"),
        ("boolean", [], "this is true or false"),
        ("boolean", 1, "this is true or false"),
        ("instant", "2030-01-31", 'is not a time such as "2030-01-31T12:00:00Z"'),
        ("instant", "2030-01-31T12:00:00", 'is not a time such as "2030-01-31T12:00:00Z"'),
        ("instant", "9999-12-31T23:59:59-03:00", 'is not a time such as "2030-01-31T12:00:00Z"'),
        ("instant", "0001-01-01T00:00:00+03:00", 'is not a time such as "2030-01-31T12:00:00Z"'),
        ("instant", 5, 'a time is a string such as "2030-01-31T12:00:00Z"'),
        ("ip", "10.0.0.0/8", "`10.0.0.0/8` is a network, not an address"),
        ("ip", "10.0.0", "`10.0.0` is not an IP address or network"),
    ],
)
def test_what_is_no_value_of_a_type_is_refused_with_words(type_, given, message):
    with pytest.raises(ValueError) as refused:
        read_value(type_, given)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "given",
    ["10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "/8", "10.0.0.0/٨"],
)
def test_a_network_of_another_form_is_refused(given):
    with pytest.raises(ValueError, match="is not an IP address or network"):
        read_network(given)


def test_a_network_with_bits_past_its_prefix_gets_a_hint():
    with pytest.raises(ValueError, match=r"did you mean `203\.0\.113\.0/24`\?"):
        read_network("203.0.113.7/24")


@given(st.sampled_from(TYPES), anything)
def test_anything_is_a_value_or_refused(type_, given):
    try:
        value = read_value(type_, given)
    except ValueError:
        return
    assert read_value(type_, show_value(type_, value)) == value


@given(st.decimals(min_value=-(10**12), max_value=10**12, places=6))
def test_every_number_of_six_places_is_exact(number):
    assert read_value("number", number) == int(number * 10**6)
    assert Decimal(show_value("number", int(number * 10**6))) == number


@given(st.ip_addresses(), st.integers(0, 128))
def test_every_network_is_shown_as_it_is_usually_written(address, length):
    network = ipaddress.ip_network((address, length % (address.max_prefixlen + 1)), strict=False)
    if network.version == 6 and network.subnet_of(ipaddress.ip_network("::ffff:0:0/96")):
        return
    single = network.prefixlen == network.max_prefixlen
    text = str(network.network_address) if single else str(network)
    assert show_network(*read_network(str(network))) == text
