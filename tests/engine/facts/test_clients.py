"""What a client is, read from real-shaped header sets (tests/engine/facts/clients/*.json)."""

from __future__ import annotations

import json
import string
from pathlib import Path

import msgspec
import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.facts.clients import Client, Clients, read_client
from tollkeeper.engine.facts.clients.agreement import LAWS
from tollkeeper.engine.facts.clients.client import CLIENT_HEADERS, HEADER_LENGTH
from tollkeeper.engine.facts.clients.products import PEOPLE
from tollkeeper.engine.facts.clients.user_agent import claim
from tollkeeper.tests.builds import both_builds
from tollkeeper.tests.examples import examples

MODULE = "tollkeeper.engine.facts.clients.client"
BUILDS = both_builds(MODULE, "tollkeeper.engine.facts.clients._headers")

CASES = [
    case
    for file in sorted((Path(__file__).parent / "clients").glob("*.json"))
    for case in json.loads(file.read_text())
]
SENT = [{name.lower(): value for name, value in case["headers"].items()} for case in CASES]
CLAIMED = [(claim(sent.get("user-agent", "")), sent) for sent in SENT]
CONSISTENT = [case["headers"] for case in CASES if case["consistent"]]

case_headers = st.sampled_from([case["headers"] for case in CASES])
one_letter_case = st.sampled_from([str.lower, str.upper, str.title])
values = st.text(st.characters(), max_size=80) | st.sampled_from(
    [value for case in CASES for value in case["headers"].values()]
)
any_headers = st.dictionaries(st.sampled_from(CLIENT_HEADERS) | st.text(max_size=20), values)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_client_is_what_its_headers_show(case):
    expected = {part: case[part] for part in ("kind", "browser", "os", "consistent")}
    assert msgspec.to_builtins(read_client(case["headers"])) == expected


@pytest.mark.parametrize("law", LAWS, ids=[law.__name__ for law in LAWS])
def test_without_a_law_some_contradiction_would_pass(law):
    others = [other for other in LAWS if other is not law]
    assert any(
        law(claimed, sent) and not any(other(claimed, sent) for other in others)
        for claimed, sent in CLAIMED
    )


def test_each_case_has_a_name_of_its_own():
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("headers", [None, {}])
def test_without_headers_the_client_is_missing(headers):
    assert read_client(headers) is None
    assert Clients()(headers) is None


def test_headers_that_say_nothing_make_an_unknown_client_that_agrees():
    assert read_client({"Host": "shop.example"}) == Client("unknown", None, None, True)


@given(headers=any_headers)
def test_any_text_gives_a_client(headers):
    assert (read_client(headers) is None) == (not headers)


@given(st.data())
def test_a_header_left_out_never_makes_a_consistent_client_inconsistent(data):
    headers = data.draw(st.sampled_from(CONSISTENT))
    left_out = data.draw(st.sets(st.sampled_from(sorted(headers))))
    rest = read_client({name: value for name, value in headers.items() if name not in left_out})
    assert rest is None or rest.consistent


@given(headers=any_headers, data=st.data())
def test_a_header_left_out_of_anything_consistent_never_makes_it_inconsistent(headers, data):
    whole = read_client(headers)
    if whole is None or not whole.consistent:
        return
    left_out = data.draw(st.sampled_from(sorted(headers)))
    rest = read_client({name: value for name, value in headers.items() if name != left_out})
    assert rest is None or rest.consistent


@given(headers=case_headers, data=st.data())
def test_order_and_letter_case_of_names_never_matter(headers, data):
    pairs = data.draw(st.permutations(sorted(headers.items())))
    spelling = data.draw(one_letter_case)
    assert read_client({spelling(name): value for name, value in pairs}) == read_client(headers)


@given(first=values, second=values, name=st.sampled_from(CLIENT_HEADERS))
def test_one_name_in_two_spellings_gives_one_answer_in_either_order(first, second, name):
    pairs = [(name.lower(), first), (name.upper(), second)]
    assert read_client(dict(pairs)) == read_client(dict(reversed(pairs)))


@given(headers=case_headers, others=st.dictionaries(st.text(string.digits, min_size=1), values))
def test_headers_that_are_not_read_change_nothing(headers, others):
    assert read_client(headers | others) == read_client(headers)


@given(st.lists(case_headers, max_size=30), st.integers(0, 3))
@settings(max_examples=examples(50))
def test_what_is_kept_is_what_would_be_read(requests, capacity):
    clients = Clients(capacity)
    assert [clients(headers) for headers in requests] == [
        read_client(headers) for headers in requests
    ]


@pytest.mark.parametrize("text", ["A", "Mozilla/5.0 (", '"Chromium";v="', "\u0130", "\0", "gzip,"])
def test_a_hundred_headers_of_8_kib_are_read(text):
    headers = dict.fromkeys(CLIENT_HEADERS, (text * 8192)[:8192])
    headers |= {f"x-{number}": text * 1000 for number in range(100 - len(headers))}
    assert read_client(headers) is not None


def test_what_follows_the_part_that_is_read_changes_nothing():
    headers = CASES[0]["headers"]
    name = headers["User-Agent"]
    long = headers | {"User-Agent": name + " " * (HEADER_LENGTH - len(name))}
    assert read_client(long | {"User-Agent": long["User-Agent"] + "curl/8.0"}) == read_client(long)


def test_no_pattern_is_taken_out_that_the_crawler_list_no_longer_has():
    assert {entry["pattern"] for entry in CRAWLER_USER_AGENTS_DATA} >= PEOPLE


@settings(max_examples=examples(200))
@given(
    st.dictionaries(
        st.builds(
            lambda name, case: case(name),
            st.sampled_from([*CLIENT_HEADERS, "host", "accept\u212a", "sec-ch-\u017f"]),
            one_letter_case,
        ),
        st.text(st.characters(), max_size=3) | st.integers(0, HEADER_LENGTH + 2).map("é".__mul__),
        max_size=6,
    )
)
def test_the_headers_that_are_read_are_the_same_in_c_and_in_python(headers):
    in_use, in_python = (
        build.values_of(headers, CLIENT_HEADERS, HEADER_LENGTH) for build in BUILDS
    )
    assert in_use == in_python
    assert all(value is None or len(value) <= HEADER_LENGTH for value in in_use)
