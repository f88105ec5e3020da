"""What does it cost to recognise a client, for known header sets and for new ones?

    python -m tollkeeper.bench.clients

Times, and their ratio to decoding a payment of 2 KB in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import msgspec

from tollkeeper.bench.tables import show
from tollkeeper.engine.facts.clients import Clients

ROUNDS = 7
SIZE = 2_000

HEADERS = {
    "Host": "shop.example",
    "Connection": "keep-alive",
    "Content-Length": "512",
    "sec-ch-ua-platform": '"Windows"',
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    "Accept": "application/json, text/plain, */*",
    "sec-ch-ua": '"Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"',
    "Content-Type": "application/json",
    "sec-ch-ua-mobile": "?0",
    "Origin": "https://shop.example",
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
    "Referer": "https://shop.example/checkout",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
}
PAYMENT = {
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
        "headers": HEADERS,
        "fingerprint": {"id": "7c4a8d09ca3762af61e59520943dc264", "provider": "basic"},
    },
    "user": {"id": "u-4711", "email": "ana@example.com"},
    "order": {"id": "o-1234567"},
    "merchant": {"id": "m-1", "country": "BR", "category_code": "5411"},
    "metadata": {f"field_{number:02}": "x" * 16 for number in range(30)},
    "analyze": {"bot_behaviour": True},
}


def decoded(count: int) -> list[dict[str, str]]:
    """Return header sets as requests bring them: equal, but with distinct string objects."""
    body = msgspec.json.encode(PAYMENT)
    return [msgspec.json.decode(body)["device"]["headers"] for _ in range(count)]


def renamed(count: int, start: int) -> list[dict[str, str]]:
    """Return header sets that differ in the User-Agent."""
    name = HEADERS["User-Agent"]
    return [HEADERS | {"User-Agent": f"{name} Shop/{start + number}"} for number in range(count)]


def microseconds(call: Callable[[Any], object], arguments: Iterable[object]) -> float:
    """Return the mean time of a call, in microseconds."""
    values = list(arguments)
    begun = time.perf_counter()
    for value in values:
        call(value)
    return (time.perf_counter() - begun) / len(values) * 1e6


def main() -> None:
    body = msgspec.json.encode(PAYMENT)
    clients = Clients()
    clients(HEADERS)
    decode = median(
        microseconds(msgspec.json.Decoder().decode, [body] * SIZE) for _ in range(ROUNDS)
    )
    seen = median(microseconds(clients, decoded(SIZE)) for _ in range(ROUNDS))
    new = median(microseconds(clients, renamed(SIZE, turn * SIZE)) for turn in range(ROUNDS))
    show(
        "Reading a client",
        ["", "µs", "× a decode"],
        [
            [f"decoding a payment of {len(body):,} bytes", decode, 1.0],
            ["a header set seen before", seen, seen / decode],
            ["a new header set", new, new / decode],
        ],
    )


if __name__ == "__main__":
    main()
