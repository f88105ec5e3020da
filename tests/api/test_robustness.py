"""Nothing from outside gets a 500: every request is answered in the one error body, or done."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.tests.api.service import Service, open_service, payment

REQUESTS = 3000

_odd: list[Any] = [
    None, True, False, 0, -1, 1.5, 10.999, 1e308, 2**70, "", " ", "\x00", "\ud800", "🙂" * 300,
    "4111111111111111", "::1", "10.0.0.1", "2026-13-01T00:00:00Z", [], {}, [[]], {"": None},
    ["x"] * 200, {"a": {"b": {"c": []}}},
]  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """A valid payment with a few of its members changed, moved, dropped or doubled."""
    body: Any = payment(
        status="declined",
        transactions=[{"status": "declined", "connector": {"id": "c", "response_code": "51"}}],
        metadata={"sku": "a-1"},
        order={"id": "o-1"},
        backend={"ip_address": "198.51.100.4", "headers": {"Accept": "*/*"}},
    )
    for _ in range(rng.randint(1, 4)):
        places = _places(body)
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = rng.choice(_odd)
            case 2 if isinstance(holder, dict):
                holder[rng.choice(["", "payment", "x" * 300, "\u202e"])] = holder[key]
            case _:
                holder[key] = [holder[key]]
    text = json.dumps(body).encode()
    if rng.random() < 0.2:
        cut = rng.randrange(len(text))
        text = text[:cut] + bytes(rng.randrange(256) for _ in range(3)) + text[cut + 2 :]
    return text


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in list(keys):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


async def refused_or_done(service: Service, method: str, path: str, body: bytes) -> None:
    answer = await service.client.request(method, path, content=body)
    assert answer.status_code in (200, 201, 404, 413, 422), (answer.status_code, body)
    if answer.status_code >= 400:
        items = answer.json()["errors"]
        assert items
        for item in items:
            assert sorted(item) == ["field", "message", "type"]
            assert all(isinstance(value, str) for value in item.values())


def test_thousands_of_mutated_payments_never_get_a_500(tmp_path: Path) -> None:
    async def story() -> None:
        rng = random.Random(20260910)
        async with open_service(tmp_path / "data") as service:
            for number in range(REQUESTS):
                method, path = (
                    ("PATCH", f"/v1/payments/p-{rng.randrange(5)}")
                    if number % 5 == 0
                    else ("POST", "/v1/payments")
                )
                await refused_or_done(service, method, path, mutated(rng))

    asyncio.run(story())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies=st.lists(st.binary(max_size=200) | st.text(max_size=80).map(str.encode), max_size=20))
def test_any_bytes_always_get_an_answer(tmp_path_factory: Any, bodies: list[bytes]) -> None:
    async def story() -> None:
        async with open_service(tmp_path_factory.mktemp("odd") / "data") as service:
            for body in bodies:
                await refused_or_done(service, "POST", "/v1/payments", body)
                await refused_or_done(service, "POST", "/v1/rules/x/versions", body)

    asyncio.run(story())


def test_odd_bytes_in_ids_and_headers_get_an_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_service(tmp_path / "data") as service:
            for path in ("%ff%fe", "%00", "%", "%zz", "a" * 5000, "%F0%9F%99%82", "%2e%2e%2f"):
                answer = await service.client.get(f"/v1/payments/{path}")
                assert answer.status_code == 404
            for value in (b"\xff", b"\x80abc", b"a" * 300):
                answer = await service.client.post(
                    "/v1/payments",
                    content=msgspec.json.encode(payment()),
                    headers={b"idempotency-key": value},
                )
                assert answer.status_code in (201, 422)

    asyncio.run(story())
