"""Any node takes any request: one that does not own the journal sends it on to the one that does.

The owner reads the key and decides, so that a key that was revoked ends everywhere at once. What was
certainly not done is sent again, to whoever owns the journal by then; what may have been done is
sent again only where doing it twice is doing it once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpcore
from litestar.types import HTTPScope, Receive, Send

from tollkeeper.api.http.errors import answer, malformed_head
from tollkeeper.api.http.operation import operation_of
from tollkeeper.api.http.routes import ROUTES

NOT_OWNER = b"toll-not-owner"
"""A header of the answer of a node that was sent on a request and does not own the journal."""
CLIENT = b"toll-client"
"""A header of a request between nodes: the address of who sent it to the first of them."""
HELD_BYTES = 1 << 16
"""A larger body is sent on as it arrives, and once only: it is held before the key was read."""
CONNECT_S = 1.0
"""How long a connection to another node may take."""
GRACE_S = 1.0
"""How long a node that owns the journal no more may still answer what it was sent before."""
_OF_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"date")
)
_LENGTH = b"content-length"
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_REPEATABLE = frozenset(
    (method, path)
    for route in ROUTES
    if operation_of(route).repeatable
    for method in route.http_methods
    for path in route.paths
)


class Forwarded(Enum):
    """What became of a request: answered, certainly not done, or that nobody knows."""

    ANSWERED = "answered"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


class HeldBody:
    """A request's body as far as it is held; where that is not the whole, the rest comes as it arrives
    and the request can be sent on once only."""

    def __init__(self, held: bytes, receive: Receive, *, is_whole: bool) -> None:
        self.held = held
        self.is_whole = is_whole
        self._receive = receive
        self._is_given = False

    def content(self) -> bytes | AsyncIterator[bytes]:
        """The body, to be sent."""
        return self.held if self.is_whole else self._flow()

    async def receive(self) -> Any:
        """The body again and what comes after it, for an application of this process."""
        if self._is_given:
            return await self._receive()
        self._is_given = True
        return {"type": "http.request", "body": self.held, "more_body": not self.is_whole}

    async def client_left(self, begun: asyncio.Event) -> None:
        """Until nobody waits any more for an answer that has begun."""
        await begun.wait()
        if not self.is_whole:
            # What is still to come of the body is read elsewhere, and tells of it there.
            await asyncio.get_running_loop().create_future()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _flow(self) -> AsyncIterator[bytes]:
        yield self.held
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise httpcore.WriteError("the client has gone")
            yield message["body"]
            more = message["more_body"]


async def hold(receive: Receive) -> HeldBody | None:
    """The body, all of it unless it is large; None when the client has gone."""
    held = bytearray()
    more = True
    while more and len(held) <= HELD_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            return None
        held += message["body"]
        more = message["more_body"]
    return HeldBody(bytes(held), receive, is_whole=not more)


class Forwarder:
    """Connections to the other nodes; `certificates` is a folder with those that nodes show each
    other (`node_context`)."""

    def __init__(self, certificates: Path | None, connections: int, idle_s: float) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=None if certificates is None else node_context(certificates),
            max_connections=connections,
            max_keepalive_connections=connections,
            # Ended here before the other node ends it.
            keepalive_expiry=idle_s / 2,
        )

    async def forward(
        self, address: str, scope: HTTPScope, body: HeldBody, send: Send, ceased: asyncio.Event
    ) -> Forwarded:
        """Sends a request on to the node at `address`; `ceased` is set once that node owns the
        journal no more. Raises httpcore's errors where an answer that had begun is cut off."""
        begun = asyncio.Event()
        answering = asyncio.create_task(self._exchange(address, scope, body, send, begun))
        ending = asyncio.create_task(_after(ceased))
        leaving = asyncio.create_task(body.client_left(begun))
        watched = (answering, ending, leaving)
        try:
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return await answering
            answering.cancel()
            await asyncio.wait([answering])
            if leaving.done():
                return Forwarded.ANSWERED
            if begun.is_set():
                raise httpcore.ReadError("the node that answered owns the journal no more")
            return Forwarded.UNKNOWN
        finally:
            for task in watched:
                task.cancel()

    async def close(self) -> None:
        await self._pool.aclose()

    async def _exchange(
        self, address: str, scope: HTTPScope, body: HeldBody, send: Send, begun: asyncio.Event
    ) -> Forwarded:
        try:
            async with self._pool.stream(
                scope["method"],
                _url(address, scope),
                headers=_headers(scope, body),
                content=body.content(),
                extensions={"timeout": {"connect": CONNECT_S}},
            ) as response:
                if any(name.lower() == NOT_OWNER for name, _ in response.headers):
                    await response.aread()
                    return Forwarded.NOT_DONE
                begun.set()
                await send(
                    {
                        "type": "http.response.start",
                        "status": response.status,
                        "headers": _without_connection(response.headers),
                    }
                )
                async for part in response.aiter_stream():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpcore.LocalProtocolError:
            # The head was not written, as with two `Host` headers: the owner would refuse it too.
            await answer(send, malformed_head("headers", "this head is not of one request"))
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout):
            return Forwarded.NOT_DONE
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
            if begun.is_set():
                raise
            return Forwarded.UNKNOWN
        return Forwarded.ANSWERED


def may_repeat(scope: HTTPScope) -> bool:
    """Whether a request does nothing more when it is done twice."""
    if scope["method"] in _SAFE:
        return True
    has_key = any(name == b"idempotency-key" for name, _ in scope["headers"])
    return has_key and (scope["method"], scope["raw_path"].decode("latin-1")) in _REPEATABLE


def of_its_client(scope: HTTPScope) -> HTTPScope:
    """A request from another node as its client's: limits by address and log lines are of that."""
    told = next((value for name, value in scope["headers"] if name == CLIENT), b"")
    try:
        address = str(ip_address(told.decode("latin-1")))
    except ValueError:
        return scope
    return {**scope, "client": (address, 0)}


def node_context(certificates: Path, *, server: bool = False) -> ssl.SSLContext:
    """How nodes know each other: `authority.pem` has signed each one's `certificate.pem`, whose key
    is `key.pem`. Raises `OSError`."""
    purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
    context = ssl.create_default_context(purpose, cafile=str(certificates / "authority.pem"))
    context.load_cert_chain(certificates / "certificate.pem", certificates / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _after(ceased: asyncio.Event) -> None:
    await ceased.wait()
    await asyncio.sleep(GRACE_S)


def _url(address: str, scope: HTTPScope) -> httpcore.URL:
    """The same target at another node. A target is never read as a part of an address: it may begin
    with `*`, hold an `@`, or have a `;`."""
    node = httpcore.URL(address)
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    return httpcore.URL(scheme=node.scheme, host=node.host, port=node.port, target=target)


def _headers(scope: HTTPScope, body: HeldBody) -> list[tuple[bytes, bytes]]:
    left_out = (_LENGTH, CLIENT)
    headers = [each for each in _without_connection(scope["headers"]) if each[0] not in left_out]
    if client := scope["client"]:
        headers.append((CLIENT, client[0].encode()))
    if body.is_whole and (body.held or scope["method"] not in _SAFE):
        headers.append((_LENGTH, str(len(body.held)).encode()))
    return headers


def _without_connection(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_CONNECTION]
