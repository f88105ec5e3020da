"""Any node takes any request: one that does not own the journal sends it on to the one that does.

The owner reads the key and decides, so that a key that was revoked ends everywhere at once. What was
certainly not done is sent again, to whoever owns the journal by then; what may have been done is
sent again only where doing it twice is doing it once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from litestar.types import HTTPScope, Receive, Send

from tollkeeper.api.http.errors import unavailable
from tollkeeper.api.http.node_connection import SHARD, Broken, NodeConnection, connect_to_node
from tollkeeper.api.http.operation import operation_of
from tollkeeper.api.http.routes import ROUTES

NOT_OWNER = b"toll-not-owner"
"""A header of the answer of a node that was sent on a request and does not own the journal."""
CLIENT = b"toll-client"
"""A header of a request between nodes: the address of who sent it to the first of them."""
HELD_BYTES = 1 << 16
"""A larger body is sent on as it arrives, and once only: it is held before the key was read."""
HELD_TOGETHER = 1 << 25
"""How many bytes of bodies a node holds for all requests together; more are refused (503)."""
GRACE_S = 1.0
"""How long a node that owns the journal no more may still answer what it was sent before."""
_OF_CONNECTION = frozenset(
    b"connection keep-alive transfer-encoding te trailer upgrade expect date".split()
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

    async def client_left(self) -> None:
        """Until nobody waits any more for an answer that has begun."""
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
                raise Broken("the client has gone")
            yield message["body"]
            more = message["more_body"]


@dataclass(slots=True)
class Hold:
    """Bodies that are held before they are sent on: `size` bytes of all requests together."""

    size: int = 0

    @asynccontextmanager
    async def body(self, receive: Receive) -> AsyncIterator[HeldBody | None]:
        """A request's body, all of it unless it is large, held until the block ends; None when the
        client has gone. Raises `Problem` 503 when too much is held.
        """
        held = bytearray()
        more = True
        try:
            while more and len(held) <= HELD_BYTES:
                message = await receive()
                if message["type"] != "http.request":
                    yield None
                    return
                held += message["body"]
                self.size += len(message["body"])
                if self.size > HELD_TOGETHER:
                    raise unavailable("too many requests wait to be sent on")
                more = message["more_body"]
            yield HeldBody(bytes(held), receive, is_whole=not more)
        finally:
            self.size -= len(held)


class Forwarder:
    """Connections to the other nodes, for requests to the owner of one shard; `certificates` is a
    folder with those that nodes show each other (`node_context`). A node keeps one for `idle_s`
    that nothing comes on."""

    def __init__(self, certificates: Path | None, idle_s: float, shard: int = 1) -> None:
        self._shard = str(shard).encode()
        self._context = None if certificates is None else node_context(certificates)
        # Ended here before the other node ends it.
        self._idle_s = idle_s / 2
        self._nodes: defaultdict[str, KnownNode] = defaultdict(KnownNode)

    async def forward(
        self, address: str, scope: HTTPScope, body: HeldBody, send: Send
    ) -> Forwarded:
        """Sends a request on to the node at `address`. Raises `Broken` where an answer that had begun
        is cut off."""
        node = self._nodes[address]
        try:
            connection = node.take_idle(self._idle_s)
            if connection is None:
                connection = await connect_to_node(address, self._context)
        except OSError:
            return Forwarded.NOT_DONE
        if node.is_former:
            connection.abort()
            return Forwarded.NOT_DONE
        node.asked.add(connection)
        try:
            head = _head(scope, body, self._shard)
            return await _exchange(connection, scope, head, body, send)
        finally:
            node.asked.discard(connection)
            if connection.is_reusable and not node.is_former:
                node.keep_idle(connection)
            else:
                connection.abort()

    def leave(self, address: str) -> None:
        """The node there owns the journal no more: it may answer what it was sent for `GRACE_S`."""
        node = self._nodes.pop(address, None)
        if node is not None:
            node.is_former = True
            for connection in node.idle:
                connection.abort()
            for connection in node.asked:
                asyncio.get_running_loop().call_later(GRACE_S, connection.abort)

    def close(self) -> None:
        """Ends all connections."""
        for node in self._nodes.values():
            for connection in (*node.idle, *node.asked):
                connection.abort()


@dataclass(slots=True)
class KnownNode:
    """Connections to a node: those that are idle, the one used last at the end, and those that it
    was asked over. `is_former` once it owns the journal no more."""

    idle: list[NodeConnection] = field(default_factory=list)
    asked: set[NodeConnection] = field(default_factory=set)
    is_former: bool = False

    def take_idle(self, idle_s: float) -> NodeConnection | None:
        """The idle connection that was used last; None when it was used too long ago."""
        now = asyncio.get_running_loop().time()
        while self.idle:
            connection = self.idle.pop()
            if connection.is_reusable and now - connection.used_at < idle_s:
                return connection
            connection.abort()
        return None

    def keep_idle(self, connection: NodeConnection) -> None:
        """To be used again."""
        connection.used_at = asyncio.get_running_loop().time()
        self.idle.append(connection)


async def _exchange(
    connection: NodeConnection, scope: HTTPScope, head: bytes, body: HeldBody, send: Send
) -> Forwarded:
    try:
        await connection.ask(scope["method"], head, body.content())
        if any(name.lower() == NOT_OWNER for name, _ in connection.headers):
            while await connection.part():
                pass
            return Forwarded.NOT_DONE
    except Broken:
        return Forwarded.UNKNOWN
    headers = _without_connection(connection.headers)
    await send({"type": "http.response.start", "status": connection.status, "headers": headers})
    if connection.is_whole:
        part = await connection.part()
        await send({"type": "http.response.body", "body": part, "more_body": False})
        return Forwarded.ANSWERED
    leaving = asyncio.create_task(_end_with(body, connection))
    try:
        while part := await connection.part():
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except Broken:
        if not leaving.done():
            raise
    finally:
        leaving.cancel()
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return Forwarded.ANSWERED


async def _end_with(body: HeldBody, connection: NodeConnection) -> None:
    await body.client_left()
    connection.abort()


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


def _head(scope: HTTPScope, body: HeldBody, shard: bytes) -> bytes:
    """A request's head, for the same target at another node."""
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    # Whichever version the client speaks: nodes keep their connections, and send in chunks.
    line = b"%b %b HTTP/1.1\r\n" % (scope["method"].encode(), target)
    # The parser has let no header in that could end its line.
    return b"".join(
        (line, *(b"%b: %b\r\n" % each for each in _headers(scope, body, shard)), b"\r\n")
    )


def _headers(scope: HTTPScope, body: HeldBody, shard: bytes) -> list[tuple[bytes, bytes]]:
    left_out = (_LENGTH, CLIENT, SHARD)
    headers = [each for each in _without_connection(scope["headers"]) if each[0] not in left_out]
    headers.append((SHARD, shard))
    if client := scope["client"]:
        headers.append((CLIENT, client[0].encode()))
    if all(name != b"host" for name, _ in headers):
        headers.append((b"host", b"tollkeeper"))
    if not body.is_whole:
        headers.append((b"transfer-encoding", b"chunked"))
    elif body.held or scope["method"] not in _SAFE:
        headers.append((_LENGTH, str(len(body.held)).encode()))
    return headers


def _without_connection(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_CONNECTION]
