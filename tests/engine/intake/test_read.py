"""Each sentence of the interface's field rules and of docs/api.md, "Validation"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import json

from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import derive
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.codes import CURRENCIES
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS, Limits
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.programs.compile.functions import metadata_number

MOMENT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
NOW = to_microseconds(MOMENT)
ATTEMPT = {"status": "failed", "connector": {"id": "acquirer"}}


def creation(**changes: Any) -> bytes:
    """The body of a small valid creation with fields set, or left out where `...` is given."""
    payment = {
        "type": "purchase",
        "currency": "BRL",
        "method": {"type": "pix"},
        "merchant": {"id": "store"},
    } | changes
    return json.encode({"payment": {k: v for k, v in payment.items() if v is not ...}})


def update(**changes: Any) -> bytes:
    return json.encode({"payment": {"status": "failed"} | changes})


def ago(**span: float) -> str:
    return (MOMENT - timedelta(**span)).isoformat()


def accepted(body: bytes, limits: Limits = DEFAULT_LIMITS) -> Payment:
    read = read_creation(body, NOW, limits)
    assert isinstance(read, Payment), read
    return read


def refused(body: bytes, limits: Limits = DEFAULT_LIMITS) -> list[tuple[str, str]]:
    return places(read_creation(body, NOW, limits))


def places(read: Payment | Update | tuple[Violation, ...]) -> list[tuple[str, str]]:
    assert isinstance(read, tuple), read
    return [(violation.field, violation.type) for violation in read]


def test_what_is_not_sent_is_filled_in() -> None:
    payment = accepted(creation())
    assert payment.status == "initiated"
    assert payment.timestamp == MOMENT
    assert to_microseconds(payment.timestamp) == NOW
    assert payment.transactions == ()
    assert payment.device is None


def test_generated_identifiers_differ_and_sort_by_time() -> None:
    earlier = [accepted(creation()).id for _ in range(50)]
    later = read_creation(creation(), NOW + 1000)
    assert isinstance(later, Payment)
    assert len(set(earlier)) == 50
    assert max(earlier) < later.id


@pytest.mark.parametrize("field", ["type", "currency", "method", "merchant"])
def test_a_required_field_left_out_is_missing(field: str) -> None:
    assert refused(creation(**{field: ...})) == [(f"payment.{field}", "missing")]


def test_a_missing_object_is_reported_at_the_object() -> None:
    body = creation(transactions=[{"status": "failed"}])
    assert refused(body) == [("payment.transactions[0].connector", "missing")]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"method": {}}, "payment.method.type"),
        ({"merchant": {}}, "payment.merchant.id"),
        ({"method": {"type": "x", "card": {"presence": "card_present"}}}, "payment.method.card.network"),
        ({"method": {"type": "x", "card": {"network": "elo"}}}, "payment.method.card.presence"),
        ({"device": {"fingerprint": {"provider": "basic"}}}, "payment.device.fingerprint.id"),
        ({"device": {"fingerprint": {"id": "f"}}}, "payment.device.fingerprint.provider"),
        ({"transactions": [{"connector": {"id": "a"}}]}, "payment.transactions[0].status"),
        ({"transactions": [{"status": "failed", "connector": {}}]}, "payment.transactions[0].connector.id"),
    ],
)  # fmt: skip
def test_a_required_member_left_out_is_missing(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "missing")]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": ""}, "payment.id"),
        ({"method": {"type": ""}}, "payment.method.type"),
        ({"merchant": {"id": ""}}, "payment.merchant.id"),
        ({"device": {"fingerprint": {"id": "", "provider": "basic"}}}, "payment.device.fingerprint.id"),
        ({"transactions": [{"status": "failed", "connector": {"id": ""}}]}, "payment.transactions[0].connector.id"),
    ],
)  # fmt: skip
def test_a_required_string_must_not_be_empty(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "invalid_value")]


NULLABLE = {
    "id": None,
    "timestamp": None,
    "backend": {"ip_address": None, "headers": None},
    "device": {"ip_address": None, "headers": None},
    "user": {"id": None, "email": None},
    "order": {"id": None},
    "merchant": {"id": "store", "country": None, "category_code": None},
    "method": {
        "type": "card",
        "card": {"network": "visa", "presence": "card_present", "bin": None, "last_four": None},
    },
    "transactions": [
        {"status": "failed", "timestamp": None, "connector": {"id": "a", "response_code": None}}
    ],
    "metadata": None,
    "analyze": {"rule": None},
}


def test_a_field_called_or_null_takes_null_as_missing() -> None:
    payment = accepted(creation(**NULLABLE))
    assert payment.metadata is None
    assert payment.device is not None
    assert payment.device.headers is None


def test_an_empty_text_counts_as_null_where_a_member_may_be_left_blank() -> None:
    card = {"network": "visa", "presence": "card_present", "bin": "", "last_four": ""}
    payment = accepted(
        creation(
            method={"type": "card", "card": card},
            user={"id": "", "email": ""},
            order={"id": ""},
            merchant={"id": "store", "country": ""},
        )
    )
    assert payment.user is not None
    assert payment.order is not None
    assert payment.method.card is not None
    assert [payment.user.id, payment.user.email, payment.order.id] == [None] * 3
    assert [payment.method.card.bin, payment.method.card.last_four] == [None] * 2
    assert payment.merchant.country is None


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"merchant": {"id": ""}}, "payment.merchant.id"),
        ({"device": {"fingerprint": {"id": "", "provider": "basic"}}},
         "payment.device.fingerprint.id"),
    ],
)  # fmt: skip
def test_the_id_of_a_merchant_or_a_fingerprint_is_not_empty(
    changes: dict[str, Any], place: str
) -> None:
    assert [field for field, _ in refused(creation(**changes))] == [place]


def test_a_rule_name_takes_null() -> None:
    accepted(creation(analyze={"bot_behaviour": True, "rule": {"name": None}}))


@pytest.mark.parametrize(
    "name",
    [b'""', b'"' + b"x" * 257 + b'"', b'"' + b"x" * 9_000 + b'"', b"7", b"1.5", b"true", b"[]",
     b'{"name": "checkout"}', b'[[[["checkout"]]]]', b"9" * 5_000, b"-1e999"],
)  # fmt: skip
def test_nothing_about_a_rules_name_fails_a_request(name: bytes) -> None:
    body = creation(analyze={"rule": {"name": 0}}).replace(b'"name":0', b'"name":' + name)
    payment = accepted(body)
    assert payment.analyze is not None
    assert payment.analyze.rule is not None
    kept = payment.analyze.rule.name
    assert kept is not None
    assert set(kept) <= {"x"}
    assert len(kept) <= 256
    assert json.decode(json.encode(payment), type=Payment) == payment


@pytest.mark.parametrize("rule", ["checkout", 7, [], True])
def test_a_rule_is_an_object_still(rule: object) -> None:
    assert refused(creation(analyze={"rule": rule})) == [("payment.analyze.rule", "invalid_type")]


@pytest.mark.parametrize(
    "field",
    ["type", "status", "currency", "amount", "method", "backend", "device", "user", "order",
     "merchant", "transactions", "analyze"],
)  # fmt: skip
def test_a_field_not_called_or_null_refuses_null(field: str) -> None:
    assert refused(creation(**{field: None})) == [(f"payment.{field}", "null")]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"method": {"type": "x", "card": None}}, "payment.method.card"),
        ({"device": {"fingerprint": None}}, "payment.device.fingerprint"),
        ({"device": {"headers": {"Accept": None}}}, "payment.device.headers.Accept"),
        ({"analyze": {"bot_behaviour": None}}, "payment.analyze.bot_behaviour"),
        ({"transactions": [None]}, "payment.transactions[0]"),
        ({"transactions": [ATTEMPT | {"id": None}]}, "payment.transactions[0].id"),
        ({"transactions": [ATTEMPT | {"duration": None}]}, "payment.transactions[0].duration"),
    ],
)
def test_a_member_not_called_or_null_refuses_null(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "null")]


def test_an_empty_object_is_present() -> None:
    payment = accepted(creation(order={}, user={}, device={}, backend={}, analyze={}))
    assert payment.order is not None
    assert payment.analyze is not None


def test_unknown_fields_are_ignored_and_names_are_case_sensitive() -> None:
    accepted(creation(colour="red"))
    assert refused(creation(currency=..., Currency="BRL")) == [("payment.currency", "missing")]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"type": 1}, "payment.type"),
        ({"amount": "10.00"}, "payment.amount"),
        ({"amount": True}, "payment.amount"),
        ({"method": []}, "payment.method"),
        ({"transactions": {}}, "payment.transactions"),
        ({"transactions": ["x"]}, "payment.transactions[0]"),
        ({"metadata": []}, "payment.metadata"),
        ({"timestamp": 1700000000}, "payment.timestamp"),
        ({"analyze": {"bot_behaviour": "yes"}}, "payment.analyze.bot_behaviour"),
        ({"analyze": {"bot_behaviour": 1}}, "payment.analyze.bot_behaviour"),
        ({"device": {"headers": {"Accept": 5}}}, "payment.device.headers.Accept"),
        ({"device": {"headers": {"Accept": ["a", 5]}}}, "payment.device.headers.Accept"),
        ({"transactions": [ATTEMPT | {"duration": "5"}]}, "payment.transactions[0].duration"),
        ({"transactions": [ATTEMPT | {"duration": True}]}, "payment.transactions[0].duration"),
    ],
)
def test_a_value_of_another_type_is_refused(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "invalid_type")]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"type": "refund"}, "payment.type"),
        ({"type": "Purchase"}, "payment.type"),
        ({"status": "canceled"}, "payment.status"),
        ({"currency": "brl"}, "payment.currency"),
        ({"currency": "ABC"}, "payment.currency"),
        ({"merchant": {"id": "m", "country": "BRA"}}, "payment.merchant.country"),
        ({"merchant": {"id": "m", "country": "XZ"}}, "payment.merchant.country"),
        ({"merchant": {"id": "m", "category_code": "0001"}}, "payment.merchant.category_code"),
        ({"device": {"fingerprint": {"id": "f", "provider": "x"}}}, "payment.device.fingerprint.provider"),
        ({"transactions": [ATTEMPT | {"status": "blocked"}]}, "payment.transactions[0].status"),
        ({"method": {"type": "x", "card": {"network": "amex", "presence": "card_present"}}}, "payment.method.card.network"),
    ],
)  # fmt: skip
def test_a_value_outside_its_list_is_refused(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "invalid_value")]


def test_a_setting_adds_codes_that_the_lists_lack() -> None:
    accepted(creation(currency="BTC"), Limits(currencies=CURRENCIES | {"BTC"}))


@pytest.mark.parametrize(
    "bad", ["4111111", "411111111", "4111111a", "4111111\n", "４１１１１１１１"]
)
def test_a_bin_is_exactly_eight_digits(bad: str) -> None:
    card = {"network": "visa", "presence": "card_present", "bin": bad, "last_four": "1111"}
    body = creation(method={"type": "card", "card": card})
    assert refused(body) == [("payment.method.card.bin", "invalid_format")]


@pytest.mark.parametrize("bad", ["111", "11111", "111x", "١١١١"])
def test_last_four_is_exactly_four_digits(bad: str) -> None:
    card = {"network": "visa", "presence": "card_present", "bin": "41111111", "last_four": bad}
    body = creation(method={"type": "card", "card": card})
    assert refused(body) == [("payment.method.card.last_four", "invalid_format")]


@pytest.mark.parametrize(
    ("sent", "hundredths"),
    [("10.5", 1050), ("1e2", 10000), ("1E+2", 10000), ("0.001e1", 1), ("1050e-2", 1050), ("10", 1000),
     ("0", 0), ("0.07", 7), ("1.1", 110), ("129.90", 12990), ("10.5000", 1050), ("999999999999.99", 99999999999999),
     ("1000000000000", 10**14), ("0e400", 0), ("0." + "0" * 400, 0), ("10.5" + "0" * 400, 1050)],
)  # fmt: skip
def test_an_amount_has_at_most_two_decimals(sent: str, hundredths: int) -> None:
    body = creation(amount=0).replace(b'"amount":0', b'"amount":' + sent.encode())
    payment = accepted(body)
    assert derive(payment, NOW, read_client).amount == hundredths
    assert payment.amount == float(sent)


@pytest.mark.parametrize(
    ("sent", "type_"),
    [("10.999", "precision"), ("0.001", "precision"), ("-0.01", "out_of_range"),
     ("1e13", "out_of_range"), ("1e400", "out_of_range"), ("9" * 400, "out_of_range"),
     ("10.50000000000000000001", "precision"), ("1e-400", "precision"), ("1e-2147483649", "precision"),
     ("0." + "0" * 400 + "1", "precision"), ("99999999999.12000000001", "precision"),
     ("10000000000.00000000001e-9", "precision"), ("1000000000000.00001", "precision"),
     ("-1e-400", "precision")],
)  # fmt: skip
def test_an_amount_out_of_bounds_is_refused(sent: str, type_: str) -> None:
    body = creation(amount=0).replace(b'"amount":0', b'"amount":' + sent.encode())
    assert refused(body) == [("payment.amount", type_)]


@pytest.mark.parametrize("sent", [b"-0", b"-0.0", b"-0.00", b"-0e5"])
def test_a_zero_with_a_sign_is_zero(sent: bytes) -> None:
    payment = accepted(creation(amount=0).replace(b'"amount":0', b'"amount":' + sent))
    assert str(payment.amount) == "0.0"


@pytest.mark.parametrize(
    "sent",
    ["2026-01-15T11:59:00", "2026-01-15", "yesterday", "", "2026-02-30T00:00:00Z",
     "2026-01-15T25:00:00Z", "2026-W03-4T11:59Z", "2026-015T11:59Z", "20260115T11:59Z",
     "2026-01-15T1159Z", "2026-01-15T11Z", "2026-01-15T11:59.5Z", "2026-01-15T11:59:00.Z",
     "2026-01-15T11:59+25:00", "2026-01-15T11:59:0٣Z"],
)  # fmt: skip
def test_a_timestamp_is_an_iso_8601_date_and_time_with_an_offset(sent: str) -> None:
    assert refused(creation(timestamp=sent)) == [("payment.timestamp", "invalid_format")]


@pytest.mark.parametrize(
    ("sent", "before"),
    [("2026-01-15T11:59Z", 60), ("20260115T115900Z", 60), ("20260115T1159Z", 60),
     ("2026-01-15T11:59:57,5Z", 2.5), ("2026-01-15T11:59:57.123456789+00", 2.876543),
     ("2026-01-15T08:59-03", 60), ("2026-01-15T08:59:00-0300", 60),
     ("20260115T172900,25+0530", 59.75), ("2026-01-15t11:59z", 60), ("2026-01-15 11:59:00Z", 60)],
)  # fmt: skip
def test_a_timestamp_may_be_in_either_form_of_iso_8601(sent: str, before: float) -> None:
    payment = accepted(creation(timestamp=sent))
    assert to_microseconds(payment.timestamp) == NOW - before * 1_000_000


@pytest.mark.parametrize(
    "sent",
    ["2026-01-15T08:30:00.25-03:00", "2026-01-15T08:30:00.25-0300", "2026-01-15T08:30:00,25-03",
     "20260115T083000.25-0300"],
)  # fmt: skip
def test_a_timestamp_keeps_its_instant_and_offset(sent: str) -> None:
    payment = accepted(creation(timestamp=sent))
    assert to_microseconds(payment.timestamp) == NOW - 29 * 60_000_000 - 59_750_000
    assert b'"2026-01-15T08:30:00.250000-03:00"' in json.encode(payment)


def test_a_timestamp_is_not_in_the_future() -> None:
    assert refused(creation(timestamp=ago(microseconds=-1))) == [
        ("payment.timestamp", "timestamp_future")
    ]
    accepted(creation(timestamp=ago(microseconds=0)))


def test_a_timestamp_is_not_older_than_24_hours() -> None:
    assert refused(creation(timestamp=ago(hours=24, microseconds=1))) == [
        ("payment.timestamp", "timestamp_too_old")
    ]
    accepted(creation(timestamp=ago(hours=24)))


def test_a_transaction_has_the_bounds_of_time_of_a_payment() -> None:
    attempts = [ATTEMPT | {"timestamp": ago(hours=25)}, ATTEMPT | {"timestamp": ago(seconds=-1)}]
    assert refused(creation(transactions=attempts)) == [
        ("payment.transactions[0].timestamp", "timestamp_too_old"),
        ("payment.transactions[1].timestamp", "timestamp_future"),
    ]


def test_the_allowance_for_clock_skew_is_a_setting() -> None:
    ahead = creation(timestamp=ago(seconds=-2))
    accepted(ahead, Limits(clock_skew=2_000_000))
    assert refused(ahead, Limits(clock_skew=1_999_999)) != []


def test_a_transaction_without_a_timestamp_gets_the_current_time() -> None:
    (attempt,) = accepted(creation(transactions=[ATTEMPT])).transactions
    assert attempt.microseconds == NOW


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.31.255.255", "192.168.1.1", "127.0.0.1", "169.254.1.1", "100.64.0.1",
     "0.0.0.0", "::", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1"],
)  # fmt: skip
def test_a_private_device_address_is_refused(address: str) -> None:
    assert refused(creation(device={"ip_address": address})) == [
        ("payment.device.ip_address", "private_address")
    ]


def test_a_private_backend_address_is_stored_as_sent() -> None:
    payment = accepted(creation(backend={"ip_address": "10.0.0.1"}))
    assert payment.backend is not None
    assert payment.backend.ip_address == "10.0.0.1"


@pytest.mark.parametrize(
    "address", ["203.0.113.9", "198.51.100.1", "2001:db8::1", "8.8.8.8", "::ffff:8.8.8.8"]
)
def test_public_and_documentation_addresses_are_accepted(address: str) -> None:
    accepted(creation(device={"ip_address": address}))


@pytest.mark.parametrize(
    "address",
    [
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "01.2.3.4",
        "8.8.8.8 ",
        "fe80::1%eth0",
        "x",
        "\x00",
        "1." * 50_000,
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    body = creation(device={"ip_address": address}, backend={"ip_address": address})
    assert refused(body) == [
        ("payment.backend.ip_address", "invalid_format"),
        ("payment.device.ip_address", "invalid_format"),
    ]


def test_a_blank_address_counts_as_null() -> None:
    payment = accepted(creation(device={"ip_address": ""}, backend={"ip_address": ""}))
    assert payment.device is not None
    assert payment.backend is not None
    assert payment.device.ip_address is None
    assert payment.backend.ip_address is None


@pytest.mark.parametrize("status", ["succeeded", "declined"])
def test_transactions_are_required_by_the_payments_status(status: str) -> None:
    expected = [("payment.transactions", "required_by_status")]
    assert refused(creation(status=status)) == expected
    assert refused(creation(status=status, transactions=[])) == expected


@pytest.mark.parametrize("status", ["initiated", "failed", "blocked"])
def test_other_statuses_require_no_transactions(status: str) -> None:
    accepted(creation(status=status))


@pytest.mark.parametrize("status", ["succeeded", "declined"])
@pytest.mark.parametrize("code", [..., None, ""])
def test_a_response_code_is_required_by_the_transactions_status(status: str, code: Any) -> None:
    connector = {"id": "acquirer"} | ({} if code is ... else {"response_code": code})
    body = creation(transactions=[{"status": status, "connector": connector}])
    assert refused(body) == [
        ("payment.transactions[0].connector.response_code", "required_by_status")
    ]


@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_other_transactions_require_no_response_code(status: str) -> None:
    accepted(creation(transactions=[ATTEMPT | {"status": status}]))


def test_a_transaction_id_is_used_once_in_a_request() -> None:
    body = creation(transactions=[ATTEMPT | {"id": "a"}, ATTEMPT, ATTEMPT, ATTEMPT | {"id": "a"}])
    assert refused(body) == [("payment.transactions[3].id", "taken")]


def test_an_array_of_header_values_is_joined() -> None:
    payment = accepted(creation(device={"headers": {"Accept": ["text/html", "*/*"], "Via": []}}))
    assert payment.device is not None
    assert payment.device.headers == {"Accept": "text/html, */*", "Via": ""}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": "x" * 257}, "payment.id"),
        ({"user": {"email": "x" * 257}}, "payment.user.email"),
        ({"device": {"headers": {"A": "x" * 8192}}}, "payment.device.headers.A"),
        ({"device": {"headers": {"A": ["x" * 5000] * 2}}}, "payment.device.headers.A"),
        ({"backend": {"headers": {str(n): "" for n in range(101)}}}, "payment.backend.headers"),
        ({"metadata": {"a": "x" * 16384}}, "payment.metadata"),
        ({"transactions": [ATTEMPT] * 101}, "payment.transactions"),
    ],
)
def test_what_is_too_long_is_refused(changes: dict[str, Any], place: str) -> None:
    assert refused(creation(**changes)) == [(place, "too_long")]


def test_what_just_fits_is_accepted() -> None:
    accepted(
        creation(
            id="é" * 256,
            device={"headers": {"A": "x" * 8191}},
            backend={"headers": {str(n): "" for n in range(100)}},
            metadata={"a": "x" * (16384 - 8)},
            transactions=[ATTEMPT] * 100,
        )
    )


@pytest.mark.parametrize(
    ("sent", "type_"),
    [(b"-1", "out_of_range"), (b"2147483648", "out_of_range"), (b"9" * 400, "out_of_range"),
     (b"1e10", "out_of_range"), (b"1e400", "invalid_type"), (b"1.5", "invalid_type"),
     (b"1." + b"0" * 40, "invalid_type")],
)  # fmt: skip
def test_a_duration_is_an_integer_within_bounds(sent: bytes, type_: str) -> None:
    body = creation(transactions=[ATTEMPT | {"duration": 7}]).replace(b":7}", b":" + sent + b"}")
    assert refused(body) == [("payment.transactions[0].duration", type_)]


@pytest.mark.parametrize("sent", [b"420", b"420.0", b"4.2e2", b"42e1"])
def test_an_integer_may_be_written_with_a_fraction_of_zero(sent: bytes) -> None:
    body = creation(transactions=[ATTEMPT | {"duration": 7}]).replace(b":7}", b":" + sent + b"}")
    assert accepted(body).transactions[0].duration == 420


def test_deep_metadata_is_refused() -> None:
    nested: Any = 1
    for _ in range(31):
        nested = [nested]
    accepted(creation(metadata={"a": nested}))
    assert refused(creation(metadata={"a": [nested]})) == [("payment.metadata", "out_of_range")]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nope", b"{'payment': {}}", b'{"payment": NaN}', b'{"payment": {"amount": Infinity}}',
     b'{"payment": {"id": "\\ud800"}}', b'{"payment": {"id": "\xff"}}', b'{"payment": {}} x',
     b'{"payment": {"amount": 01}}', b"[" * 100_000, b'{"payment": ' + b'{"a":' * 40_000],
)  # fmt: skip
def test_malformed_json_is_reported_for_the_body(body: bytes) -> None:
    assert refused(body) == [("body", "malformed_json")]


@pytest.mark.parametrize(
    ("body", "place", "type_"),
    [
        (b"[]", "body", "invalid_type"),
        (b'"payment"', "body", "invalid_type"),
        (b"null", "body", "invalid_type"),
        (b"{}", "payment", "missing"),
        (b'{"payment": null}', "payment", "null"),
        (b'{"payment": []}', "payment", "invalid_type"),
    ],
)
def test_a_body_is_an_object_with_a_payment(body: bytes, place: str, type_: str) -> None:
    assert refused(body) == [(place, type_)]
    assert places(read_update(body, NOW)) == [(place, type_)]


def test_of_a_repeated_name_the_last_one_counts() -> None:
    body = creation().replace(b'"currency":', b'"currency":5,"currency":')
    assert accepted(body).currency == "BRL"


def test_all_violations_of_a_request_come_back_together(snapshot: Any) -> None:
    body = creation(
        type="refund",
        currency=...,
        amount=10.999,
        status="declined",
        timestamp=ago(hours=25),
        method={"card": {"network": "viza", "presence": None, "bin": "4111"}},
        backend={"ip_address": "localhost"},
        device={"ip_address": "10.0.0.1", "headers": {"Accept": 5}, "fingerprint": {}},
        order=None,
        merchant={"id": "", "country": "BRA", "category_code": "12"},
        transactions=[
            {"status": "declined"},
            {"status": "succeeded", "duration": -1, "connector": {"id": "a"}},
            7,
        ],
        metadata=[],
    )
    read = read_creation(body, NOW)
    assert isinstance(read, tuple)
    lines = [f"{item.field}: {item.type}: {item.message}" for item in read]
    assert "\n".join(lines) == snapshot


def test_a_flood_of_violations_is_cut_and_counted() -> None:
    read = read_creation(creation(transactions=[{}] * 100), NOW)
    assert isinstance(read, tuple)
    assert len(read) == 101
    assert read[-1].field == "body"
    assert read[-1].message == "100 more violations are not listed"


def test_an_endless_flood_of_violations_is_not_searched_to_its_end() -> None:
    wrong = {"id": "", "status": "x", "duration": -1, "connector": {"id": ""}}
    read = read_creation(creation(transactions=[wrong] * 100), NOW)
    assert isinstance(read, tuple)
    assert len(read) == 101
    assert read[-1].message == "at least 100 more violations are not listed"


def test_too_many_headers_are_not_looked_at_to_their_end() -> None:
    wrong = {f"h{number}": 5 for number in range(150)}
    assert refused(creation(device={"headers": wrong}))[:2] == [
        ("payment.device.headers", "too_long"),
        ("payment.device.headers.h0", "invalid_type"),
    ]
    read = read_creation(creation(device={"headers": {str(n): 5 for n in range(5000)}}), NOW)
    assert isinstance(read, tuple)
    assert read[-1].message == "at least 100 more violations are not listed"


def test_a_body_of_the_largest_size_is_read_by_the_same_rules() -> None:
    large = {f"X-{number}": "x" * 8000 for number in range(30)}
    payment = accepted(creation(device={"headers": large}, amount=10.5, metadata={"a": 1}))
    assert payment.device is not None
    assert payment.device.headers == large
    body = creation(
        device={"headers": large | {"Y": 5}}, amount=10.999, metadata={"a": "x" * 16_384}
    )
    assert refused(body) == [
        ("payment.amount", "precision"),
        ("payment.device.headers.Y", "invalid_type"),
        ("payment.metadata", "too_long"),
    ]


def test_metadata_has_its_bound_whatever_is_around_it() -> None:
    attempts = [ATTEMPT | {"id": f"{number:0200}"} for number in range(80)]
    accepted(creation(metadata={"a": "x" * (16384 - 8)}, transactions=attempts))
    body = creation(metadata={"a": "x" * (16384 - 7)}, transactions=attempts)
    assert refused(body) == [("payment.metadata", "too_long")]


@pytest.mark.parametrize(
    ("sent", "rounded"),
    [("0.1", 100_000), ("1.00000049999999999999", 1_000_000), ("1.0000005", 1_000_001),
     ("-1.00000049999999999999", -1_000_000), ("1e-400", 0), ("-0.0", 0), ("12345678.1234565", 12345678123457)],
)  # fmt: skip
def test_a_metadata_number_is_read_as_it_was_written(sent: str, rounded: int) -> None:
    payment = accepted(creation(metadata={"a": 0}).replace(b'"a":0', b'"a":' + sent.encode()))
    stored = json.decode(json.encode(payment.metadata))
    assert metadata_number(stored["a"]) == rounded


@pytest.mark.parametrize("sent", ["1e400", "-1e400", "9" * 400 + ".5"])
def test_a_metadata_number_that_no_double_can_hold_is_refused(sent: str) -> None:
    body = creation(metadata={"a": 0}).replace(b'"a":0', b'"a":' + sent.encode())
    assert refused(body) == [("payment.metadata", "out_of_range")]


def test_a_violation_never_repeats_an_endless_name() -> None:
    read = read_creation(creation(device={"headers": {"x" * 200_000: 5}}), NOW)
    assert places(read) == [("payment.device.headers", "invalid_type")]


@pytest.mark.parametrize("status", ["succeeded", "declined"])
def test_an_update_needs_transactions_by_its_status(status: str) -> None:
    assert places(read_update(update(status=status), NOW)) == [
        ("payment.transactions", "required_by_status")
    ]


@pytest.mark.parametrize(
    ("changes", "place", "type_"),
    [
        ({"status": "initiated"}, "payment.status", "invalid_value"),
        ({"status": None}, "payment.status", "null"),
        ({"method": {"type": ""}}, "payment.method.type", "invalid_value"),
        ({"method": {"card": {"network": "visa"}}}, "payment.method.card.presence", "missing"),
        ({"transactions": [{"status": "failed"}]}, "payment.transactions[0].connector", "missing"),
        ({"transactions": [ATTEMPT | {"timestamp": ago(hours=-1)}]},
         "payment.transactions[0].timestamp", "timestamp_future"),
    ],
)  # fmt: skip
def test_an_update_has_the_rules_of_its_fields(
    changes: dict[str, Any], place: str, type_: str
) -> None:
    assert places(read_update(update(**changes), NOW)) == [(place, type_)]


def test_an_update_without_a_status_is_refused() -> None:
    assert places(read_update(b'{"payment": {}}', NOW)) == [("payment.status", "missing")]


def test_a_method_in_an_update_needs_no_type() -> None:
    read = read_update(update(method={}), NOW)
    assert isinstance(read, Update)
    assert read.method is not None
    assert read.method.type is None
