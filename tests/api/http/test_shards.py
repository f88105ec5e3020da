"""To which shard a request goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tollkeeper.api.http.forward import HELD_BYTES
from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.api.http.shards import Shards

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class State:
    numbers: dict[str, int]


@dataclass
class Engine:
    state: State


@dataclass
class Requests:
    """Keeps what it is asked, in place of answering."""

    engine: Engine
    bodies: list[bytes] = field(default_factory=list)

    async def public(self, _scope: Any, receive: Any, _send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)

    from_nodes = public


async def asked(path: str, body: bytes = b"", *, between: bool = False, **headers: str) -> int:
    """The shard that got the request, whole."""
    all_shards = [Requests(Engine(State({name: 1}))) for name in ("shop", "store", "kiosk")]
    shards = Shards(cast("list[ShardRequests]", all_shards))
    at = min(len(body) // 2, HELD_BYTES + 1)
    parts = [body[:at], body[at:]]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(_message: Any) -> None:
        raise AssertionError

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    method = "POST" if body else "GET"
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": named}  # fmt: skip
    await (shards.from_nodes if between else shards.public)(cast("Any", scope), receive, send)
    (found,) = [(number, each.bodies) for number, each in enumerate(all_shards, 1) if each.bodies]
    assert found[1] == [body]
    return found[0]


@pytest.mark.parametrize(
    ("sent", "shard"),
    [
        ("Bearer toll_3.abc", 3),
        ("bearer  tolls_2.abc", 2),
        ("Bearer toll_test_2.abc", 2),
        ("Bearer toll_abc", 1),
        ("Bearer toll_4.abc", 1),
        ("Bearer toll_0.abc", 1),
        ("Basic toll_3.abc", 1),
        ("", 1),
    ],
)
async def test_a_request_goes_to_the_shard_that_its_key_names(sent: str, shard: int) -> None:
    assert await asked("/v1/payments", b"a payment of any size", authorization=sent) == shard


@pytest.mark.parametrize(
    ("path", "body", "shard"),
    [
        ("/v1/sessions", b'{"session": {"key": "toll_2.a"}}', 2),
        ("/v1/sessions", b'{"session": {"code": "3.a"}}', 3),
        ("/v1/sessions", b'{"session": {"attempt": "3.a", "code": "2.of the provider"}}', 3),
        ("/v1/sign-ins", b'{"sign_in": {"account": "store"}}', 2),
        ("/v1/sign-ins", b'{"sign_in": {"account": "nobody"}}', 1),
        ("/v1/sessions", b'{"session": {"key": 2}}', 1),
        ("/v1/sessions", b"no JSON at all", 1),
        ("/v1/sessions", b" " * (2 * HELD_BYTES) + b'{"session": {"key": "toll_2.a"}}', 1),
    ],
)
async def test_who_signs_in_names_the_shard_in_the_body(path: str, body: bytes, shard: int) -> None:
    assert await asked(path, body) == shard


@pytest.mark.parametrize(
    ("told", "shard"), [("2", 2), ("3", 3), ("4", 1), ("0", 1), ("-1", 1), ("9" * 5000, 1), ("", 1)]
)
async def test_what_a_node_sends_on_goes_to_the_shard_that_it_names(told: str, shard: int) -> None:
    name = SHARD.decode().replace("-", "_")
    assert (
        await asked("/v1/payments", b"a payment of any size", between=True, **{name: told}) == shard
    )
