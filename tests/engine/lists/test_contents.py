from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import add_entries, build_contents, has_value, remove_values
from tollkeeper.engine.lists.indexes import (
    ExactIndex,
    network_index,
    network_key,
    prefix_index,
)
from tollkeeper.engine.lists.layers import HeldEntry, Layers
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.lists.values import read_network

STRINGS, NUMBERS, IPS = ListSpec("string"), ListSpec("number"), ListSpec("ip")
BINS = TableSpec("prefix", {"country": "string"})
PLACES = TableSpec("network", {"country": "string", "asn": "number"})
MAPPED = 0xFFFF << 32


def address(text: str) -> int:
    return read_network(text)[0]


def row(number: int) -> str:
    return f'["C{number}"]'


def test_a_list_holds_its_entries_and_no_others():
    held = build_contents(STRINGS, [ListEntry("ana"), ListEntry("bob")])
    assert held.contains("ana", 0)
    assert not held.contains("Ana", 0)
    assert not held.contains("an", 0)


def test_numbers_are_found_by_value_at_six_places():
    held = build_contents(NUMBERS, [ListEntry("12.5")])
    assert held.contains(12_500_000, 0)
    assert not held.contains(12_500_001, 0)


def test_an_address_is_in_a_listed_network():
    held = build_contents(
        IPS, [ListEntry("10.0.0.0/8"), ListEntry("2001:db8::/32"), ListEntry("192.0.2.7")]
    )
    inside = ["10.255.0.1", "2001:db8:ffff::1", "192.0.2.7"]
    outside = ["11.0.0.1", "2001:db9::1", "192.0.2.8", "::10.0.0.1"]
    assert [held.contains(address(text), 0) for text in inside + outside] == [True] * 3 + [
        False
    ] * 4


def test_everything_is_in_the_network_of_all_addresses():
    held = build_contents(IPS, [ListEntry("::/0")])
    assert held.contains(address("203.0.113.7"), 0)
    assert held.contains(address("2001:db8::1"), 0)


def test_an_entry_counts_until_it_expires():
    held = build_contents(STRINGS, [ListEntry("ana", expires_at=1_000)])
    assert held.contains("ana", 999)
    assert not held.contains("ana", 1_000)


def test_adding_an_entry_again_renews_it():
    held = add_entries(
        build_contents(STRINGS, [ListEntry("ana", expires_at=1_000)]), [ListEntry("ana")]
    )
    assert held.contains("ana", 10**18)


def test_a_picture_taken_before_a_change_stays_as_it_was():
    before = build_contents(STRINGS, [ListEntry("ana")])
    after = remove_values(add_entries(before, [ListEntry("bob")]), ["ana"])
    assert (before.contains("ana", 0), before.contains("bob", 0)) == (True, False)
    assert (after.contains("ana", 0), after.contains("bob", 0)) == (False, True)


def test_what_is_removed_is_gone_and_what_is_not_there_is_passed_over():
    held = remove_values(
        build_contents(IPS, [ListEntry("10.0.0.0/8")]), ["10.0.0.0/8", "192.0.2.0/24"]
    )
    assert not has_value(held, "10.0.0.0/8")
    assert not held.contains(address("10.0.0.1"), 0)


def test_an_expired_entry_is_still_there_to_remove():
    held = build_contents(STRINGS, [ListEntry("ana", expires_at=1)])
    assert has_value(held, "ana")


def test_a_table_gives_the_row_of_the_longest_prefix():
    table = build_contents(
        BINS, [ListEntry("4", row(1)), ListEntry("4111", row(2)), ListEntry("41", row(3))]
    )
    found = [table.find(key, 0) for key in ("41110000", "411", "42", "4", "5", "")]
    assert found == [
        {"country": "C2"},
        {"country": "C3"},
        {"country": "C1"},
        {"country": "C1"},
        None,
        None,
    ]


def test_an_expired_prefix_gives_way_to_a_shorter_one():
    table = build_contents(BINS, [ListEntry("4", row(1)), ListEntry("4111", row(2), expires_at=10)])
    assert table.find("41110000", 9) == {"country": "C2"}
    assert table.find("41110000", 10) == {"country": "C1"}


def test_a_row_has_every_column_and_none_where_there_is_no_value():
    table = build_contents(
        PLACES, [ListEntry("10.0.0.0/8", '["BR","64500"]'), ListEntry("::/3", "[null,null]")]
    )
    assert table.find(address("10.1.2.3"), 0) == {"country": "BR", "asn": 64_500_000_000}
    assert table.find(address("2::1"), 0) == {"country": None, "asn": None}


_networks = st.builds(
    lambda ip, length: ipaddress.ip_network((ip, length), strict=False),
    st.sampled_from(["203.0.113.77", "203.0.113.90", "10.7.7.7"]),
    st.integers(0, 32),
) | st.builds(
    lambda ip, length: ipaddress.ip_network((ip, length), strict=False),
    st.sampled_from(["2001:db8::77", "2001:db8:1::5", "::cb00:714d"]),
    st.integers(0, 128),
)
_addresses = st.sampled_from(
    [
        "203.0.113.77",
        "203.0.113.90",
        "203.0.112.1",
        "10.7.7.8",
        "2001:db8::77",
        "2001:db8:1::6",
        "::1",
    ]
)


@settings(deadline=None)
@given(
    st.lists(_networks, max_size=12),
    st.lists(_networks, max_size=4),
    st.integers(0, 12),
    _addresses,
)
def test_the_narrowest_network_always_wins(networks, removed, split, wanted):
    texts = [str(network) for network in networks]
    entries = [ListEntry(text, f'["{text}",null]') for text in texts]
    table = add_entries(build_contents(PLACES, entries[:split]), entries[split:])
    table = remove_values(table, map(str, removed))
    spans = {read_network(text): text for text in texts if text not in map(str, removed)}
    holding = [
        (bits, text)
        for (first, bits), text in spans.items()
        if address(wanted) >> (128 - bits) == first >> (128 - bits)
    ]
    found = table.find(address(wanted), 0)
    assert (found and found["country"]) == (max(holding)[1] if holding else None)


@settings(deadline=None)
@given(st.sets(st.text("12", min_size=1, max_size=6)), st.text("12", max_size=8), st.integers(0, 9))
def test_the_longest_prefix_always_wins(prefixes, wanted, split):
    entries = [ListEntry(prefix, f'["{prefix}"]') for prefix in sorted(prefixes)]
    table = add_entries(build_contents(BINS, entries[:split]), entries[split:])
    matching = [prefix for prefix in prefixes if wanted.startswith(prefix)]
    found = table.find(wanted, 0)
    assert (found and found["country"]) == max(matching, key=len, default=None)


@pytest.mark.parametrize("spec", [STRINGS, NUMBERS, IPS])
def test_an_empty_list_holds_nothing(spec):
    held = build_contents(spec, ())
    assert not held.contains("ana" if spec is STRINGS else MAPPED, 0)


class Counted(dict):
    """A dict that counts how often it is asked."""

    asked = 0

    def __contains__(self, key):
        self.asked += 1
        return super().__contains__(key)


@pytest.mark.parametrize("count", [10, 100_000])
def test_a_lookup_asks_as_often_in_many_entries_as_in_few(count):
    exact = Counted({f"customer-{n}": HeldEntry(None, ()) for n in range(count)})
    assert not ExactIndex(Layers((exact,))).find("nobody", 0)
    prefixes = Counted({f"{n:0{2 + n % 2}}": HeldEntry(None, ()) for n in range(count)})
    assert not prefix_index(prefixes).find("x" * 20, 0)
    networks = Counted(
        {network_key(n << 64, 64 + n % 2): HeldEntry(None, ()) for n in range(1, count)}
    )
    assert not network_index(networks).find(2**127, 0)
    assert (exact.asked, networks.asked) == (1, 2)
    assert prefixes.asked == len({len(prefix) for prefix in prefixes})
