"""The fast path and the full search always agree, and no body breaks either of them."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import MsgspecError, json
from msgspec.structs import asdict

from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.field_rules import FieldRules, rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.payment import CreationBody, Payment, Update, UpdateBody
from tollkeeper.engine.intake.read import creation_of, read_creation, read_update, update_of
from tollkeeper.tests.examples import examples

NOW = to_microseconds(datetime(2026, 1, 15, 12, 0, tzinfo=UTC))
RULES: FieldRules = rules_at(NOW, DEFAULT_LIMITS)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
filled = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
scalar = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
anything = st.recursive(
    scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
instant = st.sampled_from(
    ["2026-01-15T12:00:00Z", "2026-01-14T12:00:00Z", "2026-01-15T08:59:59.123456-03:00"]
)
headers = st.dictionaries(
    st.sampled_from(["Accept", "User-Agent", "cookie", "X-Api-Key"]) | text,
    text | st.lists(text, max_size=3),
    max_size=4,
)
address = st.sampled_from(["203.0.113.9", "2001:db8::1", "", "::ffff:8.8.8.8"])


def record(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=optional)


card = record(
    {
        "network": st.sampled_from(["visa", "elo", "other"]),
        "presence": st.sampled_from(["card_present", "card_not_present"]),
    },
    {
        "bin": st.none() | st.just("41111111"),
        "last_four": st.none() | st.just("1111"),
    },
)
transactions = st.lists(
    record(
        {
            "status": st.sampled_from(["succeeded", "declined", "failed", "canceled"]),
            "connector": record({"id": filled, "response_code": filled}, {"type": text}),
        },
        {"timestamp": st.none() | instant, "duration": st.integers(0, 2**31 - 1), "id": filled},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda sent: sent.get("id") or id(sent),
)
creations = record(
    {
        "type": st.sampled_from(["purchase", "verify"]),
        "currency": st.sampled_from(["BRL", "USD"]),
        "method": record({"type": filled}, {"card": card}),
        "merchant": record(
            {"id": filled},
            {"country": st.sampled_from([None, "BR"]), "category_code": st.just("5411")},
        ),
        "transactions": transactions,
    },
    {
        "id": st.none() | filled,
        "status": st.sampled_from(["initiated", "succeeded", "failed"]),
        "amount": st.integers(0, 10**14).map(lambda hundredths: hundredths / 100),
        "timestamp": st.none() | instant,
        "backend": record({}, {"ip_address": address, "headers": headers}),
        "device": record(
            {},
            {
                "ip_address": st.none() | address,
                "headers": st.none() | headers,
                "fingerprint": st.just({"id": "f", "provider": "basic"}),
            },
        ),
        "user": record({}, {"id": st.none() | text, "email": text}),
        "order": record({}, {"id": text}),
        "metadata": st.none() | st.dictionaries(text, anything, max_size=4),
        "analyze": record(
            {}, {"bot_behaviour": st.booleans(), "rule": st.none() | record({}, {"name": text})}
        ),
    },
)
updates = record(
    {
        "status": st.sampled_from(["succeeded", "declined", "failed", "blocked"]),
        "transactions": transactions,
    },
    {"method": record({}, {"type": filled, "card": card})},
)

CONNECTOR = {"id": "acquirer", "response_code": "00"}
CARD = {"network": "visa", "presence": "card_present"}
NEAR_MISSES: list[dict[str, Any]] = [
    {"currency": "brl"},
    {"amount": 10.999},
    {"timestamp": "2026-01-15T12:00:00.000001Z"},
    {"timestamp": "2026-01-14T11:59:59.999999Z"},
    {"method": {"type": "card", "card": CARD | {"bin": "4111111x"}}},
    {"method": {"type": "card", "card": CARD | {"last_four": "111"}}},
    {"backend": {"ip_address": "1.2.3"}},
    {"device": {"ip_address": "10.0.0.1"}},
    {"device": {"ip_address": "1.2.3"}},
    {"device": {"headers": {"A": "x" * 8192}}},
    {"backend": {"headers": {"A": ["x" * 5000] * 2}}},
    {"merchant": {"id": "m", "country": "BRA"}},
    {"merchant": {"id": "m", "category_code": "0001"}},
    {"status": "succeeded", "transactions": []},
    {"status": "declined", "transactions": []},
    {"transactions": [{"status": "succeeded", "connector": {"id": "a"}}]},
    {"transactions": [{"status": "declined", "connector": CONNECTOR | {"response_code": ""}}]},
    {"transactions": [{"id": "a", "status": "failed", "connector": CONNECTOR}] * 2},
    {
        "transactions": [
            {"status": "failed", "connector": CONNECTOR, "timestamp": "2026-01-15T12:00:01Z"}
        ]
    },
    {"metadata": {"a": json.decode("[" * 32 + "]" * 32)}},
    {"metadata": {"a": "x" * 16_400}},
]


@st.composite
def mutated(draw: st.DrawFn, valid: st.SearchStrategy[Any]) -> bytes:
    """A body with something replaced, removed, renamed or added somewhere, or its bytes broken."""
    whole = {"payment": deepcopy(draw(valid))}
    for _ in range(draw(st.integers(1, 3))):
        place: Any = whole
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.integers(0, 3)):
                place = place[key]
                continue
            change = draw(st.sampled_from(["replace", "remove", "blank"]))
            if change == "remove":
                del place[key]
            else:
                place[key] = draw(anything) if change == "replace" else ""
            break
    body = json.encode(whole)
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=3)) + body[at + draw(st.integers(0, 3)) :]
    return body


def assert_agree(body: bytes) -> None:
    """What the fast decode accepts, the walk accepts as the same; the walk alone refuses."""
    assert members(creation_of(body, RULES)) == members(searched(body, CreationBody))
    assert members(update_of(body, RULES)) == members(searched(body, UpdateBody))


def searched(body: bytes, envelope: Any) -> Any:
    found = find_violations(body, envelope, RULES)
    return found if isinstance(found, tuple) else found.payment


def members(read: Any) -> Any:
    """A fast decode has a type of its own."""
    return read if isinstance(read, tuple) else asdict(read)


@settings(max_examples=examples(300))
@given(creations)
def test_a_valid_creation_is_always_accepted(sent: Any) -> None:
    body = json.encode({"payment": sent})
    assert_agree(body)
    payment = read_creation(body, NOW)
    assert isinstance(payment, Payment), payment
    assert payment.type == sent["type"]
    assert payment.amount == sent.get("amount")
    assert len(payment.transactions) == len(sent["transactions"])


@settings(max_examples=examples(300))
@given(creations, st.sampled_from(NEAR_MISSES))
def test_both_ways_refuse_what_only_just_fails(sent: Any, miss: Any) -> None:
    body = json.encode({"payment": sent | miss})
    assert_agree(body)
    assert isinstance(creation_of(body, RULES), tuple)


@settings(max_examples=examples(150))
@given(updates)
def test_a_valid_update_is_always_accepted(sent: Any) -> None:
    body = json.encode({"payment": sent})
    assert_agree(body)
    assert isinstance(read_update(body, NOW), Update)


@settings(max_examples=examples(500))
@given(mutated(creations))
def test_both_ways_agree_on_a_mutated_creation(body: bytes) -> None:
    assert_agree(body)
    read_creation(body, NOW)


@settings(max_examples=examples(300))
@given(mutated(updates))
def test_both_ways_agree_on_a_mutated_update(body: bytes) -> None:
    assert_agree(body)
    read_update(body, NOW)


@settings(max_examples=examples(150))
@given(
    creations,
    st.from_regex(
        rb"-?(0|[1-9][0-9]{0,17})([.][0-9]{1,20})?([eE][-+]?[0-9]{1,4})?", fullmatch=True
    ),
)
def test_both_ways_agree_on_any_number(sent: Any, number: bytes) -> None:
    whole = sent | {"amount": 7, "metadata": {"number": 7}}
    assert_agree(json.encode({"payment": whole}).replace(b":7", b":" + number))


@settings(max_examples=examples(50))
@given(creations, st.integers(4, 30), headers)
def test_both_ways_agree_on_a_large_body(sent: Any, count: int, more: Any) -> None:
    large = {f"X-{number}": "x" * 8000 for number in range(count)}
    assert_agree(json.encode({"payment": sent | {"device": {"headers": large | more}}}))


@settings(max_examples=examples(300))
@given(anything.map(json.encode) | st.binary(max_size=40))
def test_both_ways_agree_on_anything(body: bytes) -> None:
    assert_agree(body)
    assert isinstance(read_creation(body, NOW), tuple)


@settings(max_examples=examples(300))
@given(creations)
def test_a_payment_is_always_stored_and_read_back_as_it_was(sent: Any) -> None:
    payment = read_creation(json.encode({"payment": sent}), NOW)
    assert isinstance(payment, Payment)
    assert json.decode(json.encode(payment), type=Payment) == payment


@settings(max_examples=examples(200))
@given(creations)
def test_a_stored_payment_has_only_the_interfaces_names(sent: Any) -> None:
    payment = read_creation(json.encode({"payment": sent}), NOW)
    stored = json.decode(json.encode(payment))
    assert stored.keys() <= sent.keys() | {"id", "status", "timestamp"}


@settings(max_examples=examples(300))
@given(st.binary(max_size=30))
def test_what_both_refuse_has_violations_with_places(body: bytes) -> None:
    violations = read_creation(body, NOW)
    assert isinstance(violations, tuple)
    assert violations
    assert all(item.field and item.type and item.message for item in violations)
    try:
        json.encode(violations)
    except MsgspecError as error:
        raise AssertionError(body) from error
