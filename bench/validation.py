"""What the field rules cost: `python -m bench.validation`.

Ratios to a plain msgspec decode of the same body into Structs that know no rule.
"""

from __future__ import annotations

from datetime import datetime
from timeit import repeat
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct, defstruct, json, structs

from tollkeeper.engine.careful import walk
from tollkeeper.engine.field_rules import rules_at
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.limits import DEFAULT_LIMITS
from tollkeeper.engine.payment import CreationBody
from tollkeeper.engine.validation import creation_of, read_creation

NOW = to_microseconds(datetime.fromisoformat("2026-01-15T12:00:00Z"))
RUNS, ROUNDS = 2000, 15

BROWSER = {
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
    "Host": "shop.example.com",
    "Referer": "https://shop.example.com/checkout/payment",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Dest": "empty",
    "Sec-CH-UA": '"Chromium";v="126", "Not.A/Brand";v="24"',
    "Sec-CH-UA-Mobile": "?0",
    "Sec-CH-UA-Platform": '"Windows"',
    "Connection": "keep-alive",
    "Content-Type": "application/json",
}


def attempt(number: int, status: str, code: str) -> dict[str, Any]:
    return {
        "id": f"attempt_{number}",
        "status": status,
        "duration": 812,
        "timestamp": f"2026-01-15T11:59:0{number}Z",
        "connector": {"id": f"acquirer_{number}", "type": "acquirer", "response_code": code},
    }


TYPICAL = {
    "payment": {
        "id": "pay_01HZX3",
        "type": "purchase",
        "status": "succeeded",
        "currency": "BRL",
        "amount": 129.9,
        "timestamp": "2026-01-15T11:59:00Z",
        "method": {
            "type": "credit_card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": "1111",
            },
        },
        "backend": {"ip_address": "203.0.113.9", "headers": dict(list(BROWSER.items())[:5])},
        "device": {
            "ip_address": "2001:db8::17",
            "headers": BROWSER,
            "fingerprint": {"id": "fp_9a8b7c6d5e4f", "provider": "basic"},
        },
        "user": {"id": "user_4711", "email": "ana@example.com"},
        "order": {"id": "order_778812"},
        "merchant": {"id": "store_1", "country": "BR", "category_code": "5411"},
        "transactions": [attempt(1, "declined", "51"), attempt(2, "succeeded", "00")],
        "metadata": {"sku": "SKU-1", "campaign": "spring", "items": 3},
        "analyze": {"bot_behaviour": True, "rule": {"name": "checkout"}},
    }
}


def unruled(annotation: Any) -> Any:
    """The same type without bounds, choices and instants."""
    if get_origin(annotation) is Annotated:
        return unruled(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        fields = [
            (field.name, unruled(field.type), *(() if field.required else (field.default,)))
            for field in structs.fields(annotation)
        ]
        return defstruct(annotation.__name__, fields, kw_only=True, frozen=True, gc=False)
    if get_origin(annotation) is Literal or annotation is datetime:
        return str
    if get_origin(annotation) is tuple:
        return tuple[unruled(get_args(annotation)[0]), ...]
    if get_origin(annotation) in (dict, list):
        return annotation
    parts = [unruled(part) for part in get_args(annotation)]
    return annotation if not parts else parts[0] | parts[1]


def main() -> None:
    body = json.encode(TYPICAL)
    wrong = body.replace(b'"BRL"', b'"brl"')
    plain = json.Decoder(unruled(CreationBody))
    typed = json.Decoder(CreationBody)
    rules = rules_at(NOW, DEFAULT_LIMITS)
    measured = {
        "plain decode": lambda: plain.decode(body),
        "decode with types": lambda: typed.decode(body),
        "every field rule": lambda: creation_of(body, rules),
        "and scrubbed, complete": lambda: read_creation(body, NOW),
        "careful walk": lambda: walk(body, CreationBody, rules),
        "an invalid request": lambda: read_creation(wrong, NOW),
    }
    best = {
        name: min(repeat(step, number=RUNS, repeat=ROUNDS)) / RUNS * 1e6
        for name, step in measured.items()
    }
    print(f"a payment of {len(body)} bytes")
    for name, microseconds in best.items():
        print(f"{name:24}{microseconds:8.1f} µs{microseconds / best['plain decode']:8.2f} ×")


if __name__ == "__main__":
    main()
