"""What a body may be, and what is said of one that is not: the place, the type, all at once."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = "rule checkout\n  condition large when amount > 100 then deny\n"
SECRET = "a secret of enough letters"
WEBHOOK = {"url": "https://shop.example/alerts", "secrets": [SECRET]}


WRONG: list[tuple[str, Any, list[tuple[str, str]]]] = [
        ("/v1/account", {}, [("account", "missing")]),
        ("/v1/account", {"account": 1}, [("account", "invalid_type")]),
        ("/v1/account", {"account": None}, [("account", "null")]),
        ("/v1/account", [], [("body", "invalid_type")]),
        ("/v1/account", 5, [("body", "invalid_type")]),
        (
            "/v1/account",
            {"account": {"thresholds": {"deny": "high"}, "time_zone": 1}},
            [("account.thresholds.deny", "invalid_type"), ("account.time_zone", "invalid_type")],
        ),
        ("/v1/rules/checkout/active", {}, [("version", "missing")]),
        ("/v1/rules/checkout/active", {"version": "1"}, [("version", "invalid_type")]),
        ("/v1/rules/checkout/active", {"version": 1.5}, [("version", "invalid_type")]),
        ("/v1/rules/checkout/active", {"version": True}, [("version", "invalid_type")]),
        ("/v1/rules/checkout/active", {"version": None}, [("version", "null")]),
        (
            "/v1/rules/checkout/active",
            {"version": None, "breaking": 1, "applies_from": 2},
            [("version", "null"), ("breaking", "invalid_type"), ("applies_from", "invalid_type")],
        ),
        (
            "/v1/rules/checkout/rollout",
            {"version": "x", "by": "shoe"},
            [("version", "invalid_type"), ("percent", "missing"), ("by", "invalid_value")],
        ),
        (
            "/v1/rules/checkout/rollout",
            {"version": 1, "percent": 101, "by": "shoe"},
            [("percent", "out_of_range"), ("by", "invalid_value")],
        ),
        ("/v1/webhooks", {"webhook": {}}, [("webhook.url", "missing")]),
        (
            "/v1/webhooks",
            {"webhook": {"url": "https://x.example/", "kinds": ["all"], "only": {"action": ["no"]}}},
            [("webhook.kinds[0]", "invalid_value"), ("webhook.only.action[0]", "invalid_value")],
        ),
        (
            "/v1/webhooks",
            {"webhook": {"url": 5, "secrets": [SECRET, 7, None]}},
            [
                ("webhook.url", "invalid_type"),
                ("webhook.secrets[1]", "invalid_type"),
                ("webhook.secrets[2]", "null"),
            ],
        ),
        ("/v1/lists/blocked/entries", {}, [("entries", "missing")]),
        ("/v1/lists/blocked/entries", {"entries": {}}, [("entries", "invalid_type")]),
        (
            "/v1/lists/blocked/entries",
            {"entries": [{"value": "a"}, {}, 7, None, {"value": {}}, {"value": None}]},
            [
                ("entries[1].value", "missing"),
                ("entries[2]", "invalid_type"),
                ("entries[3]", "invalid_type"),
                ("entries[4].value", "invalid_value"),
                ("entries[5].value", "missing"),
            ],
        ),
        ("/v1/lists/blocked", {"type": 5}, [("type", "invalid_type")]),
        ("/v1/lists/blocked", {"type": "colour"}, [("type", "invalid_value")]),
        ("/v1/lists/blocked", {"type": None}, [("type", "null")]),
        (
            "/v1/lists/blocked",
            {"by": "guess", "columns": 7},
            [("by", "invalid_value"), ("columns", "invalid_type")],
        ),
]  # fmt: skip


@pytest.fixture
async def furnished(service: Service) -> Service:
    """A service with a list `blocked` and a rule `checkout`."""
    await service.client.put("/v1/lists/blocked", json={"type": "string"})
    await service.client.post("/v1/rules/checkout/versions?publish=true", content=RULE)
    return service


async def test_all_that_is_wrong_with_a_body_is_named_at_its_place(furnished: Service) -> None:
    for path, body, found in WRONG:
        answer = await furnished.client.put(path, json=body)
        assert (answer.status_code, errors(answer)) == (422, found), (path, body)


STRANGERS: list[tuple[str, Any, str]] = [
    ("/v1/account", {"account": {"treshold": {}}}, "account.treshold"),
    ("/v1/account", {"account": {}, "acount": {}}, "acount"),
    ("/v1/account", {"account": {"thresholds": {"dney": 0.9}}}, "account.thresholds.dney"),
    ("/v1/account", {"account": {"extra_codes": {"mcc": []}}}, "account.extra_codes.mcc"),
    ("/v1/account", {"account": {"name": "rival"}}, "account.name"),
    ("/v1/lists/fresh", {"type": "string", "colums": {}}, "colums"),
    ("/v1/lists/blocked/entries", {"entries": [], "entires": []}, "entires"),
    (
        "/v1/lists/blocked/entries",
        {"entries": [{"value": "a", "expire_at": "2099-01-01T00:00:00Z"}]},
        "entries[0].expire_at",
    ),
    ("/v1/rules/checkout/active", {"version": 1, "applies_form": "x"}, "applies_form"),
    ("/v1/rules/checkout/shadow", {"version": 1, "percent": 5}, "percent"),
    (
        "/v1/rules/checkout/rollout",
        {"version": 1, "percent": 5, "by": "user", "bye": 1},
        "bye",
    ),
    ("/v1/webhooks", {"webhook": {**WEBHOOK, "secret": SECRET}}, "webhook.secret"),
]


async def test_a_member_that_nothing_reads_is_refused_and_nothing_is_changed(
    furnished: Service,
) -> None:
    before = (await furnished.client.get("/v1/audit")).json()
    for path, body, field in STRANGERS:
        answer = await furnished.client.put(path, json=body)
        assert answer.status_code == 422, (path, body)
        assert (field, "unknown_member") in errors(answer)
    assert (await furnished.client.get("/v1/audit")).json() == before


async def test_a_setting_that_has_no_null_does_not_take_it(service: Service) -> None:
    shown = (await service.client.get("/v1/account")).json()["account"]
    for setting in shown.keys() - {"name", "default_rule"}:
        answer = await service.client.put("/v1/account", json={"account": {setting: None}})
        assert (answer.status_code, errors(answer)) == (422, [(f"account.{setting}", "null")])


async def test_the_default_rule_may_be_none(service: Service) -> None:
    await service.client.post("/v1/rules/checkout/versions", content=RULE)
    for name in ("checkout", None):
        answer = await service.client.put("/v1/account", json={"account": {"default_rule": name}})
        assert answer.json()["account"]["default_rule"] == name


async def test_an_account_as_it_is_read_may_be_sent_back(service: Service) -> None:
    shown = (await service.client.get("/v1/account")).json()["account"]
    answer = await service.client.put("/v1/account", json={"account": shown})
    assert (answer.status_code, answer.json()) == (200, {"account": shown})


async def test_entries_as_they_are_read_may_be_sent_back(service: Service) -> None:
    await service.client.put("/v1/lists/blocked", json={"type": "string"})
    entry = {"value": "u-1", "expires_at": "2099-01-01T00:00:00Z", "note": "seen twice"}
    await service.client.put("/v1/lists/blocked/entries", json={"entries": [entry]})
    shown = (await service.client.get("/v1/lists/blocked/entries")).json()["entries"]
    again = await service.client.put("/v1/lists/blocked/entries", json={"entries": shown})
    assert again.status_code == 200, again.text


async def test_a_list_that_is_also_a_table_is_refused(service: Service) -> None:
    both = {"type": "string", "by": "value", "columns": {"country": "string"}}
    answer = await service.client.put("/v1/lists/fresh", json=both)
    assert (answer.status_code, errors(answer)) == (422, [("type", "invalid_value")])


async def test_members_that_a_payment_does_not_know_stay_ignored(service: Service) -> None:
    answer = await service.client.post("/v1/payments", json=payment(colour="red") | {"more": 1})
    assert answer.status_code == 201


NO_JSON = [
    (b"", "the body is empty"),
    (b"  \n", "the body is empty"),
    (b"{", "the body is not JSON: "),
    (b"\xff\xfe", "the body is not JSON: "),
    (b"\xef\xbb\xbf{}", "the body is not JSON: it begins with a byte order mark"),
    (b'{"MEMBER": {"type": "\xff"}}', "the body is not JSON: it is not UTF-8"),
    (b'{"MEMBER": {"type": "\\ud800"}}', "the body is not JSON: it has half of a surrogate pair"),
    (b'{"MEMBER": {"type": "\\\\ud800"', "the body is not JSON: input data was truncated"),
    (b'{"MEMBER": {"metadata": {"\\ud800": 1}}}', "the body is not JSON: "),
    (b'{"MEMBER": {}} {}', "the body is not JSON: "),
    (b'{"MEMBER": ' + b"[" * 5000 + b"]" * 5000 + b"}", "the body is not JSON: "),
    (b'{"MEMBER": NaN}', "the body is not JSON: "),
]


async def test_a_body_that_is_not_json_is_said_to_be_none(service: Service) -> None:
    for method, path, member in (
        ("POST", "/v1/payments", b"payment"),
        ("POST", "/v1/events", b"event"),
        ("PUT", "/v1/account", b"account"),
    ):
        for text, words in NO_JSON:
            body = text.replace(b"MEMBER", member)
            answer = await service.client.request(method, path, content=body)
            assert answer.status_code == 422
            assert errors(answer) == [("body", "malformed_json")], (path, body[:80])
            assert answer.json()["errors"][0]["message"].startswith(words), body[:80]


READING = [
    ("POST", "/v1/payments"),
    ("PATCH", "/v1/payments/p"),
    ("PUT", "/v1/account"),
    ("POST", "/v1/events"),
    ("DELETE", "/v1/lists/blocked/entries"),
    ("POST", "/v1/rules/checkout/versions"),
]


async def test_a_body_in_a_content_coding_is_refused(furnished: Service) -> None:
    body = gzip.compress(json.dumps(payment()).encode())
    for coding in ("gzip", "br", "deflate, gzip", "identity, gzip", "nonsense"):
        for method, path in READING:
            headers = {"content-encoding": coding}
            answer = await furnished.client.request(method, path, content=body, headers=headers)
            assert answer.status_code == 415
            assert errors(answer) == [("content-encoding", "unsupported_media_type")]
            assert answer.headers["accept-encoding"] == "identity"


NOT_JSON = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "multipart/form-data; boundary=x",
    "json",
    "application/jsonp",
    "application/+json",
    "text/json+x",
    "application/xml",
    "*/*",
]


async def test_a_body_of_another_type_than_json_is_refused(furnished: Service) -> None:
    for media_type in NOT_JSON:
        for method, path in READING[:-1]:
            headers = {"content-type": media_type}
            answer = await furnished.client.request(method, path, content=b"{}", headers=headers)
            assert answer.status_code == 415, (media_type, path)
            assert errors(answer) == [("content-type", "unsupported_media_type")]


async def test_json_is_taken_under_each_of_its_names(service: Service) -> None:
    body = json.dumps(payment()).encode()
    for media_type in (
        None,
        "",
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json;v=1",
        "application/vnd.shop.payment+json",
        "application/problem+json ; charset=UTF-8",
    ):
        headers = {"content-encoding": "identity"}
        if media_type is not None:
            headers["content-type"] = media_type
        answer = await service.client.post("/v1/payments", content=body, headers=headers)
        assert answer.status_code == 201, (media_type, answer.text)


async def test_a_rules_text_is_taken_as_text(service: Service) -> None:
    path = "/v1/rules/checkout/versions"
    for media_type, status in (
        (None, 201),
        ("text/plain", 201),
        ("text/plain; charset=utf-8", 201),
        ("text/x-rule", 201),
        ("application/octet-stream", 201),
        ("application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
    ):
        headers = {} if media_type is None else {"content-type": media_type}
        answer = await service.client.post(path, content=RULE, headers=headers)
        assert answer.status_code == status, (media_type, answer.text)
        if status == 415:
            assert errors(answer) == [("content-type", "unsupported_media_type")]


async def test_each_long_header_of_a_payment_is_named(service: Service) -> None:
    headers = {"X-Long": "a" * 9000, "Accept": "*/*", "X-Longer": "b" * 10_000, "X-Odd": 7}
    body = payment(device={"headers": headers}, backend={"headers": {"Via": "c" * 8192}})
    answer = await service.client.post("/v1/payments", json=body)
    assert errors(answer) == [
        ("payment.backend.headers.Via", "too_long"),
        ("payment.device.headers.X-Odd", "invalid_type"),
        ("payment.device.headers.X-Long", "too_long"),
        ("payment.device.headers.X-Longer", "too_long"),
    ]


async def test_too_many_headers_hide_nothing_else(service: Service) -> None:
    headers = {"X-Long": "a" * 9000} | {f"X-{number}": "a" for number in range(101)}
    answer = await service.client.post("/v1/payments", json=payment(device={"headers": headers}))
    assert errors(answer) == [
        ("payment.device.headers", "too_long"),
        ("payment.device.headers.X-Long", "too_long"),
    ]


async def test_an_idempotency_key_is_1_to_256_printable_characters(service: Service) -> None:
    body = json.dumps(payment())
    for key, type_ in (
        (b"", "invalid_value"),
        (b"k" * 257, "too_long"),
        ("schlüssel".encode(), "invalid_format"),
        ("schlüssel".encode("latin-1"), "invalid_format"),
        (b"a\tb", "invalid_format"),
    ):
        for path in ("/v1/payments", "/v1/events"):
            headers = {b"idempotency-key": key}
            answer = await service.client.post(path, content=body, headers=headers)
            assert (answer.status_code, errors(answer)) == (422, [("idempotency-key", type_)])


async def test_two_idempotency_keys_are_one_too_many(service: Service) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    answer = await service.client.post("/v1/payments", json=payment(), headers=headers)
    assert (answer.status_code, errors(answer)) == (422, [("idempotency-key", "invalid_value")])


async def test_what_is_wrong_with_events_is_named(service: Service) -> None:
    for body, found in (
        ({"events": 5}, [("events", "invalid_type")]),
        ({"events": None}, [("events", "null")]),
        ({"events": []}, [("events", "out_of_range")]),
        ({"event": {}, "events": []}, [("event", "invalid_value")]),
        ({"event": {"data": 1}}, [("event.type", "missing"), ("event.data", "invalid_type")]),
        ({}, [("event", "missing")]),
    ):
        answer = await service.client.post("/v1/events", json=body)
        assert (answer.status_code, errors(answer)) == (422, found), body


async def test_a_card_number_in_a_note_is_masked_and_a_value_is_not(service: Service) -> None:
    await service.client.put("/v1/lists/blocked", json={"type": "string"})
    number = "4111111111111111"
    entry = {"value": number, "note": f"card {number} of the caller"}
    await service.client.put("/v1/lists/blocked/entries", json={"entries": [entry]})
    (shown,) = (await service.client.get("/v1/lists/blocked/entries")).json()["entries"]
    assert shown["value"] == number
    assert shown["note"] == "card 41111111****1111 of the caller"


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        (
            "POST",
            "/v1/payments",
            b'{"payment": {"amount": 1, "amount": 9, "metadata": {"a": 1, "a": 2}}}',
            ["payment.amount", "payment.metadata.a"],
        ),
        ("PATCH", "/v1/payments/p", b'{"payment": {}, "payment": {}}', ["payment"]),
        ("POST", "/v1/events", b'{"events": [{"type": "a", "type": "b"}]}', ["events[0].type"]),
        ("PUT", "/v1/account", b'{"account": {"x": 1, "x": 1}}', ["account.x"]),
    ],
)
async def test_a_member_that_is_there_twice_is_refused(
    shared_service: Service, method: str, path: str, body: bytes, fields: list[str]
) -> None:
    answer = await shared_service.client.request(method, path, content=body)
    assert answer.status_code == 422
    assert errors(answer) == [(field, "malformed_json") for field in fields]


async def test_a_row_of_texts_is_searched_as_every_other_member(service: Service) -> None:
    sent = {"conditions": "many", "without": ["amount", 7]}
    answer = await service.client.post("/v1/suggestions", json=sent)
    assert errors(answer) == [("conditions", "invalid_type"), ("without[1]", "invalid_type")]
