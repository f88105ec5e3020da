"""Nothing from outside gets a 500: every request is answered in the one error body, or done."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.api.http.document import document
from tollkeeper.tests.api.http.service import Service, open_service, payment
from tollkeeper.tests.examples import examples

REQUESTS = 3000
ODD_REQUESTS = 1000

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
    return damaged(rng, json.dumps(changed(rng, body)).encode())


def changed(rng: random.Random, body: Any) -> Any:
    for _ in range(rng.randint(1, 4)):
        places = _places(body)
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = deepcopy(rng.choice(_odd))
            case 2 if isinstance(holder, dict):
                holder[rng.choice(["", "payment", "x" * 300, "\u202e"])] = deepcopy(holder[key])
            case _:
                holder[key] = [holder[key]]
    return body


def damaged(rng: random.Random, text: bytes) -> bytes:
    if text and rng.random() < 0.2:
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
        assert_one_error_body(answer)


def assert_one_error_body(answer: httpx.Response) -> None:
    items = answer.json()["errors"]
    assert items
    for item in items:
        assert sorted(item) == ["field", "message", "type"]
        assert all(isinstance(value, str) for value in item.values())


NAMES = [
    "gate",
    "1",
    "a%2Fb",
    "%ff",
    "%00",
    "%",
    "%zz",
    "x" * 300,
    "..",
    "%2e%2e",
    "{}",
    "-1",
    "a+b",
]
QUERIES = [
    "publish=true", "publish=%ff", "limit=1&cursor=9", "cursor=x", "since=yesterday", "key=a&key=b",
    "url=%00", "expected=99999999999999999999", "applies_from=9999-99", "from=1&to=x", "action=deny",
    "%F0%9F", "&&==;", "since=2026-01-01T00:00:00Z",
]  # fmt: skip
HEADERS: list[dict[bytes, bytes]] = [
    {b"authorization": b"Bearer x"},
    {b"authorization": b"Basic \xff"},
    {b"content-type": b"\xff"},
    {b"content-type": b"application/json; charset=nonsense"},
    {b"content-encoding": b"gzip"},
    {b"idempotency-key": b""},
    {b"host": b"a b"},
    {b"content-length": b"-1"},
]
METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"]


def bodies_of(operation: Any) -> list[Any]:
    contents = operation.get("requestBody", {}).get("content", {})
    return [
        example["value"]
        for content in contents.values()
        for example in content.get("examples", {}).values()
    ]


def odd_request(rng: random.Random) -> tuple[str, str, bytes, dict[bytes, bytes]]:
    """A described request, changed in its method, path, query, headers and body."""
    path, methods = rng.choice(list(document()["paths"].items()))
    method = rng.choice([*methods, *methods, rng.choice(METHODS).lower()])
    sent = rng.choice(bodies_of(methods.get(method, {})) or [{}])
    if isinstance(sent, str):
        content = sent.encode()
    else:
        body = deepcopy(sent)
        # Some stay as described, so that they find what was made, and odd ones change that.
        content = json.dumps(body if rng.random() < 0.5 else changed(rng, body)).encode()
    path = re.sub(r"\{\w+\}", lambda _: rng.choice(NAMES), path)
    if rng.random() < 0.1:
        path = path.replace("/", "//", 1) if rng.random() < 0.5 else f"{path}/"
    if rng.random() < 0.4:
        path += f"?{rng.choice(QUERIES)}"
    headers = rng.choice(HEADERS) if rng.random() < 0.15 else {}
    return method.upper(), path, damaged(rng, content), headers


def test_odd_requests_at_every_route_always_get_an_answer(tmp_path: Path) -> None:
    async def story() -> None:
        rng = random.Random(20261122)
        answered: Counter[int] = Counter()
        async with open_service(tmp_path / "data") as service:
            for _ in range(ODD_REQUESTS):
                method, path, content, headers = odd_request(rng)
                answer = await service.client.request(
                    method, f"http://test{path}", content=content, headers=headers
                )
                assert answer.status_code < 500, (method, path, content, answer.text)
                if answer.status_code >= 400 and method != "HEAD":
                    assert_one_error_body(answer)
                answered[answer.status_code] += 1
        assert {200, 201, 204, 401, 404, 405, 415, 422} <= answered.keys(), answered

    asyncio.run(story())


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


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
