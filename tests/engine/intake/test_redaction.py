"""What must never be stored is gone before anything reads a payment (docs/api.md, "Validation")."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

from tollkeeper.engine.intake import redaction
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.intake.redaction import (
    _CONFIDENTIAL_VALUE,
    blot_digits,
    is_confidential_value,
    mask_card_numbers,
    mask_for,
    mask_number,
)
from tollkeeper.tests.examples import examples

NOW = 1_768_478_400_000_000
VISA = "4111111111111111"
DIGITS = "tollkeeper.engine.intake._digits"


def stored(**changes: Any) -> Payment:
    payment = {
        "type": "purchase",
        "currency": "BRL",
        "method": {"type": "card"},
        "merchant": {"id": "store"},
    }
    read = read_creation(json.encode({"payment": payment | changes}), NOW)
    assert isinstance(read, Payment), read
    return read


def stored_headers(headers: dict[str, Any]) -> dict[str, str]:
    payment = stored(device={"headers": headers}, backend={"headers": headers})
    assert payment.device is not None
    assert payment.backend is not None
    assert payment.device.headers == payment.backend.headers
    assert payment.device.headers is not None
    return payment.device.headers


@pytest.mark.parametrize(
    "name",
    ["Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization", "Cookie",
     "Set-Cookie", "Cookie2", "X-Api-Key", "Api-Key", "apikey", "X-Auth-Token", "X-Access-Token",
     "X-CSRF-Token", "X-XSRF-TOKEN", "X-CSRFToken", "X-Session-Id", "Session", "X-Amz-Security-Token",
     "Ocp-Apim-Subscription-Key", "X-Refresh-Token", "X-Client-Secret", "X-JWT-Assertion", "X-Sid",
     "X-Amzn-Oidc-Data", "X-Amzn-Oidc-Identity", "X-Forwarded-Client-Cert", "X-Client-Cert",
     "X-SSL-Cert", "Client-Cert", "X-Ms-Client-Principal", "X-WSSE", "X-Otp", "X-Github-Otp",
     "X-TOTP", "X-PIN", "X-Passcode", "X-Pwd", "DPoP", "X-Ticket", "X-Firebase-AppCheck",
     "PHPSESSID", "JSESSIONID", "connect.sid", "X-Api-Key-Id", "X-SAML-Response"],
)  # fmt: skip
def test_a_confidential_header_is_removed(name: str) -> None:
    assert stored_headers({name: "s3cr3t", "Accept": "*/*"}) == {"Accept": "*/*"}
    assert stored_headers({name: ["s3cr3t"]}) == {}


@pytest.mark.parametrize(
    "name",
    ["User-Agent", "Accept", "Host", ":authority", "Referer", "X-Forwarded-For", "Sec-CH-UA",
     "X-Request-Id", "Keep-Alive", "Origin", "Shipping", "X-Ping", "Pinterest-Version", "Keyboard",
     "Monkey-Id", "Sec-CH-UA-Platform"],
)  # fmt: skip
def test_a_header_that_tells_of_the_client_is_kept(name: str) -> None:
    assert stored_headers({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "value",
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1LTEifQ.c2lnbmF0dXJl", "eyJhbGciOiJub25lIn0.e30.",
     "prefix eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1LTEifQ.c2ln", "Basic dXNlcjpwYXNzd29yZA==",
     "bearer 8f14e45fceea167a", "Negotiate YIIJvwYGKwYBBQUC", "DPoP eyJ0eXAiOiJkcG9w",
     "-----BEGIN CERTIFICATE-----MIIB", "-----BEGIN%20CERTIFICATE-----%0AMIIB",
     "PHPSESSID=298zf09hf012fh2; lang=de", "theme=dark; JSESSIONID=1A530637289A03B07",
     "ASP.NET_SessionId=2kxvpw0", "sess=91", "connect.sid=s%3Aabc"],
)  # fmt: skip
def test_a_header_with_a_confidential_value_is_removed_whatever_its_name(value: str) -> None:
    assert stored_headers({"X-Custom": value, "Accept": "*/*"}) == {"Accept": "*/*"}
    assert stored_headers({"X-Custom": [value, "b"]}) == {}


@pytest.mark.parametrize(
    "value",
    ["Basic", "basic auth", "Digesting", "session started", "eyJust", "Mozilla/5.0 (basic; x)",
     "/account?sessions=3", "possess=1 b"],
)  # fmt: skip
def test_a_value_that_only_looks_a_little_like_one_is_kept(value: str) -> None:
    assert stored_headers({"X-Custom": value}) == {"X-Custom": value}


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("4111111111111111", "41111111****1111"),
        ("4111 1111 1111 1111", "4111 1111 **** 1111"),
        ("4111-1111-1111-1111", "4111-1111-****-1111"),
        ("5555555555554444", "55555555****4444"),
        ("2223003122003222", "22230031****3222"),
        ("378282246310005", "378282*****0005"),
        ("3782 822463 10005", "3782 82**** *0005"),
        ("30569309025904", "305693****5904"),
        ("6011111111111117", "60111111****1117"),
        ("3530111333300000", "35301113****0000"),
        ("6062826786276634", "60628267****6634"),
        ("6362970000457013", "63629700****7013"),
        ("4000000000000000006", "40000000*******0006"),
        ("4222222222222", "422222***2222"),
        ("card 4111111111111111, exp 12/27", "card 41111111****1111, exp 12/27"),
        ("4111 1111 1111 1111 12/27", "4111 1111 **** 1111 12/27"),
        ("4111.1111.1111.1111", "4111.1111.****.1111"),
        ("4111_1111_1111_1111", "4111_1111_****_1111"),
        ("4111/1111/1111/1111", "4111/1111/****/1111"),
        ("4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a0****\u00a01111"),
        ("2026-01-15 4111111111111111", "2026-01-15 41111111****1111"),
        ("4111111111111111 5555555555554444", "41111111****1111 55555555****4444"),
    ],
)
def test_a_card_number_is_masked(sent: str, shown: str) -> None:
    assert mask_card_numbers(sent) == shown


@pytest.mark.parametrize(
    "sent",
    [
        "4111111111111112",  # fails Luhn
        "1111111111111117",  # no scheme
        "41111111111111111",  # no scheme's length
        "4111  1111  1111  1111",  # two spaces
        "4111..1111..1111..1111",
        "192.168.100.200",
        "1700000000000",
        "+55 11 91234-5678",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_other_digits_stay(sent: str) -> None:
    assert mask_card_numbers(sent) == sent


def test_card_numbers_are_masked_wherever_there_is_free_text() -> None:
    payment = stored(
        method={"type": f"card {VISA}"},
        device={"headers": {"Referer": f"/pay?card={VISA}", f"X-{VISA}": ["a", VISA]}},
        transactions=[
            {
                "status": "failed",
                "connector": {"id": "acquirer", "type": VISA, "response_code": VISA},
            }
        ],
        metadata={"note": VISA, "number": int(VISA), VISA: 1, "deep": [{"x": [float(VISA)]}]},
    )
    assert VISA.encode() not in json.encode(payment)
    assert payment.metadata == {
        "note": "41111111****1111",
        "number": "41111111****1111",
        "41111111****1111": 1,
        "deep": [{"x": ["41111111****1111"]}],
    }


def test_a_card_number_in_escapes_is_masked() -> None:
    body = json.encode(
        {
            "payment": {
                "type": "purchase",
                "currency": "BRL",
                "method": {"type": VISA},
                "merchant": {"id": "store"},
            }
        }
    )
    escaped = body.replace(VISA.encode(), b"".join(b"\\u003%c" % digit for digit in VISA.encode()))
    read = read_creation(escaped, NOW)
    assert isinstance(read, Payment)
    assert read.method.type == "41111111****1111"


def test_identifiers_are_never_altered() -> None:
    payment = stored(
        id=VISA,
        user={"id": VISA},
        order={"id": VISA},
        merchant={"id": VISA},
        device={"fingerprint": {"id": VISA, "provider": "basic"}},
        transactions=[{"id": VISA, "status": "failed", "connector": {"id": VISA}}],
    )
    assert json.encode(payment).count(VISA.encode()) == 7


def test_an_update_is_scrubbed_too() -> None:
    sent = {"status": "failed", "method": {"type": VISA}}
    read = read_update(json.encode({"payment": sent}), NOW)
    assert isinstance(read, Update)
    assert read.method is not None
    assert read.method.type == "41111111****1111"


@pytest.mark.parametrize(
    "name",
    ["cvv", "CVV", "cvv2", "cvc", "cvc2", "csc", "cvn", "cav2", "pin_block", "pinblock", "cid", "pin", "security_code", "securityCode",
     "Security-Code", "card_cvv", "cardCvc", "track", "track1", "track_2", "trackData"],
)  # fmt: skip
def test_a_secret_metadata_entry_is_dropped(name: str) -> None:
    payment = stored(metadata={name: "123", "deep": [{name: 1, "kept": 2}]})
    assert payment.metadata == {"deep": [{"kept": 2}]}


@pytest.mark.parametrize(
    "name", ["tracking_number", "tracker", "pinned", "pin_code_area", "city", "incident", "cvvx"]
)
def test_an_entry_that_only_sounds_secret_is_kept(name: str) -> None:
    assert stored(metadata={name: "1"}).metadata == {name: "1"}


def test_other_metadata_stays_as_it_was_sent() -> None:
    metadata = {"a": None, "b": True, "c": 1.5, "d": [1, "x", {}], "e": {"f": []}, "g": -12, "": ""}
    assert stored(metadata=metadata).metadata == metadata


def luhn(digits: str) -> bool:
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


@settings(max_examples=examples(200))
@given(
    st.integers(0, 10**14 - 1).map(lambda n: f"4{n:014}"),
    st.text("ab x-:.", max_size=5),
    st.text("ab x:.", max_size=5),
    st.lists(st.booleans(), min_size=15, max_size=15),
)
def test_a_valid_number_is_always_masked(
    stem: str, before: str, after: str, spaced: list[bool]
) -> None:
    number = next(stem + str(check) for check in range(10) if luhn(stem + str(check)))
    sent = number[0] + "".join(" " * gap + d for gap, d in zip(spaced, number[1:], strict=True))
    shown = mask_card_numbers(before + sent + after)
    assert shown.count("*") == 4
    assert len(shown) == len(before + sent + after)
    assert mask_card_numbers(shown) == shown


@settings(max_examples=examples(200))
@given(st.text("0123456789 -x", max_size=60))
def test_only_digits_are_ever_altered(text: str) -> None:
    shown = mask_card_numbers(text)
    assert len(shown) == len(text)
    for sent, kept in zip(text, shown, strict=True):
        assert kept == sent or (sent.isdigit() and kept == "*")
    if shown != text:
        assert mask_for(json.encode({"text": text})) is mask_card_numbers


@settings(max_examples=examples(200))
@given(st.integers() | st.floats(allow_nan=False))
def test_a_number_is_masked_as_its_text_is(number: float) -> None:
    shown = mask_number(number)
    assert shown == number or "*" in str(shown)


def escaped(text: str, chosen: list[bool]) -> bytes:
    """The text as JSON, some of its characters as escapes."""
    parts = (f"\\u{ord(c):04x}" if hide else c for c, hide in zip(text, chosen, strict=True))
    return ('{"text":"' + "".join(parts) + '"}').encode()


@settings(max_examples=examples(200))
@given(st.data(), st.text("0123456789 -x", max_size=40))
def test_no_escape_ever_hides_a_card_number(data: st.DataObject, text: str) -> None:
    hidden = data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    body = escaped(text, hidden)
    assert json.decode(body) == {"text": text}
    if mask_for(body) is None:
        assert mask_card_numbers(text) == text


@pytest.mark.parametrize("separator", ["x", " ", "-", "", "  "])
def test_a_flood_of_digits_loses_them_all(separator: str) -> None:
    flood = separator.join([VISA] * 440)
    payment = stored(
        device={"headers": {"A": flood, "Referer": "/page/2"}},
        metadata={"note": flood, "number": int(VISA), "count": 2},
    )
    assert payment.device is not None
    assert payment.device.headers == {
        "A": flood.translate(str.maketrans(dict.fromkeys("0123456789", "*"))),
        "Referer": "/page/2",
    }
    assert payment.metadata is not None
    assert VISA not in payment.metadata["note"]
    assert payment.metadata["number"] == "*" * 16
    assert payment.metadata["count"] == 2


@settings(max_examples=examples(200))
@given(st.text("0123456789 -x", max_size=60))
def test_what_is_blotted_out_never_shows_more_than_what_is_masked(text: str) -> None:
    assert mask_card_numbers(blot_digits(text)) == blot_digits(text)
    assert blot_digits(text) == text or not any(map(str.isdigit, blot_digits(text)))


def test_a_card_number_hidden_in_an_exponent_is_masked() -> None:
    body = b'{"payment":{"type":"purchase","currency":"BRL","method":{"type":"x"},"merchant":{"id":"m"},"metadata":{"a":41111111111.11111e5}}}'
    read = read_creation(body, NOW)
    assert isinstance(read, Payment)
    assert read.metadata == {"a": "41111111****1111"}


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["eyJhbGci", "eYj", ".", "e30", "-----BEGIN", " ", "\t", "\x1c", "Basic", "dPoP", "ntlm", "dXNlcjpw",
             "PHPSESSID", "jsess", "session-", "id", "token", "=", "connect.sid", "\u017f", "\u212a", "x"]
        ),
        max_size=6,
    ).map("".join)
)  # fmt: skip
def test_a_value_is_always_found_out_as_its_pattern_says(value: str) -> None:
    assert is_confidential_value(value) == (_CONFIDENTIAL_VALUE.search(value) is not None)


@pytest.mark.skipif(find_spec(DIGITS) is None, reason="the look in C isn't built")
@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["4", "4111", "411111", "u00a0", "u0034", "ad", "x", '"'])
        | st.sampled_from([" ", "-", ".", "_", "/", "\\", "\u00a0", "é"])
    ).map(lambda parts: "".join(parts).encode())
)
def test_the_first_look_at_a_body_says_what_the_second_would(body: bytes) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redaction, "may_hold_number", lambda _body: True)
        looked_into = mask_for(body) is not None
    assert redaction.may_hold_number(body) is looked_into


@pytest.mark.parametrize("repeated", ["eyJ", "eyJaaaaaa", "eyJ-", "eyJ.", "eyJa a"])
def test_a_value_full_of_beginnings_of_tokens_is_read_once(repeated: str) -> None:
    assert not is_confidential_value(repeated * 300_000)
