from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.lists.imports import BadEntry
from tollkeeper.engine.lists.maxmind_file import BadDatabase, read_maxmind
from tollkeeper.engine.lists.spec import TableSpec
from tollkeeper.tests.examples import examples

PLACES = TableSpec(
    "network", {"country": "string", "region": "string", "asn": "number", "vpn": "boolean"}
)
PATHS = {
    "country": "country.iso_code",
    "region": "subdivisions.0.iso_code",
    "asn": "autonomous_system_number",
    "vpn": "is_vpn",
}
RECORDS = {
    "203.0.113.0/24": {
        "country": {"iso_code": "BR", "names": {"en": "Brazil"}},
        "subdivisions": [{"iso_code": "SP"}, {"iso_code": "XX"}],
        "autonomous_system_number": 64500,
        "is_vpn": False,
    },
    "203.0.112.0/32": {"country": {"iso_code": "PT"}, "subdivisions": []},
    "2001:db8::/32": {"country": {"iso_code": "DE"}, "is_vpn": True},
    "198.51.100.0/24": {"continent": {"code": "SA"}},
}


def test_networks_and_the_mapped_values_become_rows(maxmind):
    rows = {row.value: row.columns for row in read_maxmind(maxmind(RECORDS), PLACES, PATHS)}
    assert rows == {
        "203.0.113.0/24": '["BR","SP","64500","false"]',
        "203.0.112.0": '["PT",null,null,null]',
        "2001:db8::/32": '["DE",null,null,"true"]',
    }


def test_the_rows_are_found_by_address(maxmind):
    table = build_contents(PLACES, read_maxmind(maxmind(RECORDS), PLACES, PATHS))
    address = 0xFFFF << 32 | 0xCB007107
    assert table.find(address, 0) == {
        "country": "BR",
        "region": "SP",
        "asn": 64_500_000_000,
        "vpn": False,
    }


def test_a_value_of_another_type_is_reported_with_its_network(maxmind):
    path = maxmind(
        {"203.0.113.0/24": {"country": {"iso_code": 55}}, "198.51.100.0/24": {"country": "BR"}}
    )
    found = list(read_maxmind(path, PLACES, {"country": "country.iso_code", "asn": "country"}))
    assert found == [
        BadEntry("network 198.51.100.0/24", "`asn`: `BR` is not a number"),
        BadEntry("network 203.0.113.0/24", "`country`: this is a string; `asn`: this is a number"),
    ]


def test_a_file_that_is_no_database_says_so(tmp_path):
    path = tmp_path / "places.mmdb"
    path.write_text("value,country\n203.0.113.0/24,BR\n")
    with pytest.raises(BadDatabase):
        list(read_maxmind(path, PLACES, PATHS))


@settings(
    deadline=None,
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_a_damaged_database_gives_rows_or_an_error_and_never_a_crash(maxmind, data):
    path = maxmind(RECORDS)
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        for found, _ in zip(read_maxmind(path, PLACES, PATHS), range(1000), strict=False):
            assert isinstance(found, ListEntry | BadEntry)
    except BadDatabase:
        pass
