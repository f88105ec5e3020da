"""Example bodies that several operations share; a test sends them."""

from __future__ import annotations

from typing import Any, Final

PAYMENT: Final[dict[str, Any]] = {
    "payment": {
        "id": "order-1001-1",
        "type": "purchase",
        "currency": "BRL",
        "amount": 129.9,
        "method": {
            "type": "credit_card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": "1111",
            },
        },
        "device": {
            "ip_address": "203.0.113.7",
            "headers": {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"},
            "fingerprint": {"id": "d-1", "provider": "basic"},
        },
        "user": {"id": "u-1", "email": "ana@shop.example"},
        "order": {"id": "order-1001"},
        "merchant": {"id": "m-1", "country": "BR", "category_code": "5411"},
        "analyze": {"bot_behaviour": True, "rule": {"name": "checkout"}},
    }
}
SMALLEST: Final[dict[str, Any]] = {
    "payment": {
        "type": "verify",
        "currency": "EUR",
        "method": {"type": "credit_card"},
        "merchant": {"id": "m-1"},
    }
}
FINISHED: Final[dict[str, Any]] = {
    "payment": {
        "type": "purchase",
        "status": "declined",
        "currency": "EUR",
        "amount": 10,
        "method": {"type": "credit_card"},
        "merchant": {"id": "m-1"},
        "transactions": [
            {
                "id": "t-1",
                "status": "declined",
                "duration": 420,
                "connector": {"id": "acquirer-7", "type": "acquirer", "response_code": "51"},
            }
        ],
    }
}
UPDATE: Final[dict[str, Any]] = {
    "payment": {
        "status": "succeeded",
        "transactions": [
            {
                "id": "t-1",
                "status": "succeeded",
                "duration": 380,
                "connector": {"id": "acquirer-7", "response_code": "00"},
            }
        ],
    }
}
ANALYSES: Final[dict[str, Any]] = {
    "bot_behaviour": {"action": "challenge", "score": 0.62},
    "rule": {
        "name": "checkout",
        "version": 3,
        "condition": {"id": "guessing", "name": "Retries of one order, or a script by night"},
    },
}
RULE: Final = (
    'rule checkout "Small amounts, many cards"\n'
    '  condition large "A large amount in euros"\n'
    '    when currency == "EUR" and amount > 5000\n'
    "    then challenge\n"
    "  otherwise default\n"
)
SCORECARD: Final = (
    "scorecard bot_behaviour\n"
    "  baseline 0.03\n"
    "  signal library_client\n"
    '    adds 3.2 when device.client.kind == "library"\n'
)
EVENT_TYPE: Final = (
    "event sign_in\n"
    "  field user_id: string required\n"
    '  field result: "success" | "failure" required\n'
    '  metric failures = count(events by user_id over 1h where result == "failure")\n'
    '  monitor brute_force "One user, many failed sign-ins" when failures >= 3\n'
)
DEFINITIONS: Final = "definitions amounts\n  let small = amount < 10.00\n"
EVENT: Final[dict[str, Any]] = {
    "event": {"type": "sign_in", "data": {"user_id": "u-1", "result": "failure"}}
}
EVENTS: Final[dict[str, Any]] = {
    "events": [
        {"type": "sign_in", "data": {"user_id": "u-2", "result": "failure"}},
        {"type": "sign_in", "data": {"user_id": "u-2"}},
    ]
}

ALERT: Final[dict[str, Any]] = {
    "id": "20-0",
    "type": "sign_in",
    "monitor": "many",
    "title": "Many sign-ins",
    "key": ["u-1"],
    "at": "2026-09-10T00:26:40Z",
    "values": {"failures": 2},
}
