"""What does reading a payment cost, and does a bad one cost more?

    python -m tollkeeper.bench.validation

Ratios to a plain msgspec decode of the same bodies into Structs without rules, and to reading a
valid payment of the same size. The steps alternate; the figures are the best rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import cycle
from time import perf_counter_ns
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct, defstruct, json, structs

from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import derive, record
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.field_rules import rules_at
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.payment import Creation, CreationBody, Payment
from tollkeeper.engine.intake.read import creation_of, read_creation
from tollkeeper.engine.intake.violations import Violation

NOW = to_microseconds(datetime.fromisoformat("2026-01-15T12:00:00Z"))
BODIES, RUNS, ROUNDS = 500, 100, 150
MAX_BODY = 256 * 1024

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


TYPICAL: dict[str, dict[str, Any]] = {
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
    """Return the same type without bounds, choices and instants."""
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
        return GenericAlias(tuple, (unruled(get_args(annotation)[0]), ...))
    if get_origin(annotation) in (dict, list):
        return annotation
    parts = [unruled(part) for part in get_args(annotation)]
    return annotation if not parts else parts[0] | parts[1]


def changed(**members: Any) -> bytes:
    """Return the typical payment with other members."""
    return json.encode({"payment": TYPICAL["payment"] | members})


def varied(number: int) -> bytes:
    """Return a typical payment of another person."""
    payment = TYPICAL["payment"]
    return changed(
        id=f"pay_{number:06}",
        amount=number + number % 100 / 100,
        user={"id": f"user_{number:04}", "email": f"person{number:04}@example.com"},
        order={"id": f"order_{number:06}"},
        backend=payment["backend"] | {"ip_address": f"203.0.113.{number % 250}"},
        device=payment["device"] | {"ip_address": f"2001:db8::{number:04x}"},
    )


def of_size(size: int) -> bytes:
    """Return a valid payment of about so many bytes, padded with headers."""
    lacking, filler = size - len(changed()), "books and music; " * 470
    more = {f"X-{at}": filler[: lacking - at] for at in range(0, lacking, 7990)}
    return changed(backend={"headers": more}) if more else changed()


def hostile() -> dict[str, tuple[bytes, bytes]]:
    """Return bodies that demand as much work as possible, each with a valid one of its size and
    kind.
    """
    attempts = [attempt(1, "failed", "05") | {"id": f"attempt_{n}"} for n in range(100)]
    wrong = {"id": "", "status": "x", "duration": -1, "timestamp": "x", "connector": {"type": 5}}
    texts = {"headers": {str(number): str(number) for number in range(100)}}
    digits = {"headers": {f"X-{number}": "4 " * 4000 for number in range(30)}}
    cards = {"headers": {f"X-{number}": "4111111111111111x" * 470 for number in range(30)}}
    decimals = {f"k{number}": number + 1.2345678901234567 for number in range(560)}
    nested = b"[" * 60_000 + b"]" * 60_000
    members = b",".join(b'"m%d":1' % number for number in range(20_000))
    alike = {
        "a currency that is none": (changed(currency="brl"), changed()),
        "a type that is none": (changed(type="x"), changed()),
        "100 empty transactions": (
            changed(transactions=[{}] * 100),
            changed(transactions=[{"status": "failed", "connector": {"id": "a"}}] * 100),
        ),
        "100 transactions, each wrong": (
            changed(transactions=[wrong] * 100),
            changed(transactions=attempts),
        ),
        "100 transactions, one wrong": (
            changed(transactions=[*attempts[:99], wrong]),
            changed(transactions=attempts),
        ),
        "100 headers of numbers": (
            changed(device={"headers": dict.fromkeys(texts["headers"], 1)}),
            changed(device=texts),
        ),
        "16 KiB of long decimals": (
            changed(type="x", metadata=decimals),
            changed(metadata=decimals),
        ),
        "20,000 unknown members": (
            changed(type="x")[:-2] + b"," + members + b"}}",
            changed()[:-2] + b"," + members + b"}}",
        ),
    }
    other = {
        "14,000 metadata entries": changed(metadata={f"key_{n}": n for n in range(14_000)}),
        "16,000 headers": changed(device={"headers": {f"h{n}": "x" for n in range(16_000)}}),
        "a header of 60,000 values": changed(device={"headers": {"A": ["x"] * 60_000}}),
        "60,000 wrong transactions": changed(transactions=[5] * 60_000),
        "nested 60,000 deep": changed()[:-2] + b',"metadata":' + nested + b"}}",
        "a long amount": changed(amount=5).replace(b":5,", b":0." + b"1" * 250_000 + b","),
        "a long identifier": changed(id="4 " * 125_000),
        "digits in headers, a wrong type": changed(type="x", device=digits),
        "digits in headers, valid": changed(device=digits),
        "card numbers in headers, valid": changed(device=cards),
    }
    return alike | {name: (body, of_size(len(body))) for name, body in other.items()}


def best_times(
    steps: Mapping[str, Callable[[Any], object]], given: Mapping[str, Iterable[Any]], runs: int
) -> dict[str, float]:
    """Return the µs of each step, at best."""
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            values = [value for value, _ in zip(given[name], range(runs), strict=False)]
            begun = perf_counter_ns()
            for value in values:
                step(value)
            best[name] = min(best[name], (perf_counter_ns() - begun) / runs / 1000)
    return best


def read(body: bytes) -> Payment | tuple[Violation, ...]:
    return read_creation(body, NOW)


def look_at(creation: Creation) -> object:
    """Read each member that has a rule beyond its type, without checking it: the least that any
    check in Python takes.
    """
    card, merchant = creation.method.card, creation.merchant
    user, order, backend, device = creation.user, creation.order, creation.backend, creation.device
    return (
        creation.amount,
        creation.currency,
        creation.timestamp,
        creation.status,
        creation.metadata,
        merchant.country,
        merchant.category_code,
        card and (card.bin, card.last_four),
        user and (user.id, user.email),
        order and order.id,
        backend and backend.ip_address,
        device and device.ip_address,
        [
            (each.status, each.connector.response_code, each.timestamp, each.id)
            for each in creation.transactions
        ],
    )


def print_typical() -> None:
    bodies = [varied(number) for number in range(BODIES)]
    plain, typed = json.Decoder(unruled(CreationBody)), json.Decoder(CreationBody)
    decode = typed.decode
    rules, clients, encode = rules_at(NOW, DEFAULT_LIMITS), Clients(), json.Encoder().encode
    payments = [payment for body in bodies if not isinstance(payment := read(body), tuple)]
    facts = [derive(payment, NOW, clients) for payment in payments]
    wrong = [body.replace(b'"BRL"', b'"brl"') for body in bodies]
    steps: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
        "plain decode": (plain.decode, bodies),
        "decode with types": (typed.decode, bodies),
        "the same, members looked at": (lambda body: look_at(decode(body).payment), bodies),
        "every field rule": (lambda body: creation_of(body, rules), bodies),
        "the same, scrubbed and complete": (read, bodies),
        "what is derived": (lambda payment: derive(payment, NOW, clients), payments),
        "what is stored, encoded": (lambda one: encode(record(one)), facts),
        "a refused payment": (read, wrong),
    }
    best = best_times(
        {name: step for name, (step, _) in steps.items()},
        {name: cycle(given) for name, (_, given) in steps.items()},
        RUNS,
    )
    print(f"| a payment of {len(bodies[0]):,} bytes | µs | × |\n|---|---|---|")
    for name, took in best.items():
        print(f"| {name} | {took:.1f} | {took / best['plain decode']:.2f} |")


def print_hostile() -> None:
    print("\n| a hostile request | KB | violations | µs | × a valid one |\n|---|---|---|---|---|")
    for name, (body, valid) in hostile().items():
        assert len(body) <= MAX_BODY, name
        assert not isinstance(read(valid), tuple), name
        pair = {"this": [body], "valid": [valid]}
        best = best_times(dict.fromkeys(pair, read), pair, 1)
        result = read(body)
        found = len(result) if isinstance(result, tuple) else 0
        ratio = best["this"] / best["valid"]
        print(f"| {name} | {len(body) / 1000:.1f} | {found} | {best['this']:.0f} | {ratio:.1f} |")


def main() -> None:
    print_typical()
    print_hostile()


if __name__ == "__main__":
    main()
