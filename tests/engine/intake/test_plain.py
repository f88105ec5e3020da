"""What is taken for plain needs no closer look, which would find the same, in C and in Python."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tollkeeper.engine.intake import field_rules, read, redaction
from tollkeeper.engine.intake.field_rules import is_deeper
from tollkeeper.tests.builds import both_builds

COMPILED = "tollkeeper.engine.intake._plain"
RULES, READ, REDACTION = (
    both_builds(module.__name__, COMPILED) for module in (field_rules, read, redaction)
)
PLAIN_AMOUNT = re.compile(rb"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,2})?")
BUILDS = ["in use", "in Python"]

names = st.sampled_from(
    [
        *redaction._USUAL_HEADERS,
        *redaction._WATCHED_HEADERS,
        *redaction._SECRET_HEADERS,
        "referer",
        "REFERER",
        "x-api-key",
        "X-Other",
        "é",
    ]
)
parts = st.sampled_from(
    [
        "eyJhbGci",
        "eYj",
        ".",
        "e30",
        "-----BEGIN",
        "--",
        " ",
        "\t",
        "\x1c",
        "Basic",
        "dPoP",
        "ntlm ",
        "dXNlcjpw",
        "PHPSESSID",
        "jsess",
        "session-",
        "es",
        "id=",
        "connect.sid",
        "=",
        "ſ",
        "x",
    ]
)
values = st.lists(parts, max_size=5).map("".join)


@pytest.mark.parametrize("build", REDACTION, ids=BUILDS)
@given(headers=st.dictionaries(names, values | st.lists(values, max_size=2), max_size=4))
@example(headers={"Referer": "\x1f bAsIc dXNlcjpw"})
def test_headers_that_are_taken_for_public_are_public(build: Any, headers: dict[str, Any]) -> None:
    if build.are_public(headers, redaction._HARMLESS, redaction._WATCHED):
        assert redaction._public_headers(headers) is headers


def test_no_watched_name_is_confidential_by_itself() -> None:
    assert not any(map(redaction._is_confidential, redaction._WATCHED))


def test_what_browsers_send_is_taken_for_public_where_that_is_looked_at_in_c() -> None:
    sent = {"User-Agent": "Mozilla/5.0", "referer": "https://shop.example/", "ETag": "x"}
    is_known = redaction.are_public({"Host": "shop"}, redaction._HARMLESS, redaction._WATCHED)
    for headers, is_usual in [(dict(list(sent.items())[:2]), True), (sent, False)]:
        said = redaction.are_public(headers, redaction._HARMLESS, redaction._WATCHED)
        assert said is (is_known and is_usual)


@pytest.mark.parametrize("build", RULES, ids=BUILDS)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats()
        | st.lists(st.none(), max_size=1) | st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
        max_size=4,
    )
)  # fmt: skip
def test_an_object_is_plain_without_object_array_and_fraction(
    build: Any, value: dict[str, Any]
) -> None:
    has_fraction = any(isinstance(member, float) for member in value.values())
    assert build.is_plain(value) is not (is_deeper(value, 1) or has_fraction)


@pytest.mark.parametrize("build", READ, ids=BUILDS)
@given(
    st.from_regex(PLAIN_AMOUNT, fullmatch=True)
    | st.text("0129.-+e ", max_size=16).map(str.encode)
    | st.binary(max_size=4)
)
@example(b"999999999999.99")
@example(b"1000000000000")
@example(b"1.234")
@example(b"00.1")
@example(b"1.")
def test_an_amount_that_is_written_plainly_is_the_nearest_double(build: Any, text: bytes) -> None:
    is_plain = PLAIN_AMOUNT.fullmatch(text) is not None
    assert build.plain_amount(text) == (float(text) if is_plain else None)
