"""The payment that benchmarks send, 1.6 KB; `http.lua` sends the same."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import json

DEVICE = {
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept": "text/html,application/xhtml+xml",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "pt-BR,pt;q=0.8,en;q=0.5",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "same-origin",
    "Origin": "https://shop.example",
    "Referer": "https://shop.example/checkout",
}
BACKEND = {"User-Agent": "okhttp/4.12.0", "Accept": "*/*", "Host": "shop.example"}


def payment(random: Random) -> dict[str, Any]:
    """Return a payment of one of 5,000 users, without an id, for the rule `web_checkout`."""
    user = random.randrange(5000)
    return {
        "type": "purchase",
        "currency": "BRL",
        "amount": 129.9,
        "method": {
            "type": "credit_card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": f"{random.randrange(9999):04}",
            },
        },
        "backend": {"ip_address": "198.51.100.7", "headers": BACKEND},
        "device": {
            "ip_address": f"203.0.{random.randrange(250)}.7",
            "headers": DEVICE,
            "fingerprint": {"id": f"d{random.randrange(7000)}", "provider": "basic"},
        },
        "user": {"id": f"u{user}", "email": f"u{user}@mail.example"},
        "order": {"id": f"o{random.randrange(1_000_000)}"},
        "merchant": {"id": "m1", "country": "BR", "category_code": "5411"},
        "metadata": {"cart": "books and music; " * 30, "items": 3, "channel": "web"},
        "analyze": {"bot_behaviour": True, "rule": {"name": "web_checkout"}},
    }


def body(random: Random) -> bytes:
    """Return the request's body."""
    return json.encode({"payment": payment(random)})
