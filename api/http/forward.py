"""Forward requests to the node that owns the journal, so that any node takes any request.

The owner checks the key and decides, so that a revoked key stops working everywhere at once. A
request that was certainly not executed is sent again, to whichever node owns the journal then; one
that may have been executed only if it is idempotent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from litestar.types import HTTPScope, Receive, Send

from tollkeeper.api.http.errors import Problem, unavailable
from tollkeeper.api.http.frames import NOT_DONE
from tollkeeper.api.http.node_connection import SHARD, Broken, NodeConnection, connect_to_node
from tollkeeper.api.http.operation import operation_of
from tollkeeper.api.http.payment_link import PaymentLink, open_link
from tollkeeper.api.http.plain import HeaderLines, PlainRequest, sending
from tollkeeper.api.http.routes import ROUTES

NOT_OWNER = b"toll-not-owner"
"""A response header of a node that got a forwarded request but doesn't own the journal."""
CLIENT = b"toll-client"
"""A request header between nodes: the client's address, as the first node saw it."""
HELD_BYTES = 1 << 16
"""A larger body is forwarded as it arrives, and only once, since bodies are held before the key is
checked.
"""
HELD_TOGETHER = 1 << 25
"""The most bytes of bodies that a node holds for all requests with a known key, and again for all
other requests; past it, requests are refused (503).
"""
GRACE_S = 1.0
"""How long a former owner may still answer requests that were forwarded to it."""
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
    """The result of forwarding: answered, certainly not executed, or unknown."""

    ANSWERED = "answered"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


class HeldBody:
    """A request's body, as far as it is held. If that isn't all of it, the rest is forwarded as it
    arrives, and the request can be sent only once.
    """

    def __init__(self, held: bytes, receive: Receive, *, is_whole: bool) -> None:
        self.held = held
        self.is_whole = is_whole
        self._receive = receive
        self._is_given = False

    def content(self) -> bytes | AsyncIterator[bytes]:
        """Return the body to send."""
        return self.held if self.is_whole else self._flow()

    async def receive(self) -> Any:
        """Replay the body and what follows, for an application in this process."""
        if self._is_given:
            return await self._receive()
        self._is_given = True
        return {"type": "http.request", "body": self.held, "more_body": not self.is_whole}

    async def client_left(self) -> None:
        """Wait until the client disconnects, once its answer has begun."""
        if not self.is_whole:
            # The rest of the body is read by `_flow`, which notices a disconnect.
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


def _too_much() -> Problem:
    return unavailable("too many requests wait to be sent on")


@dataclass(slots=True)
class Hold:
    """Holds bodies before they are forwarded; `size` is the number of bytes over its requests."""

    size: int = 0

    def add(self, size: int) -> None:
        """Count `size` more held bytes; the caller subtracts them later. Raises as `body`."""
        if self.size + size > HELD_TOGETHER:
            raise _too_much()
        self.size += size

    @asynccontextmanager
    async def body(self, receive: Receive) -> AsyncIterator[HeldBody | None]:
        """Hold a request's body while the context lasts, all of it unless it is large; None if the
        client has disconnected. Raises `Problem` 503 if too much is held.
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
                    raise _too_much()
                more = message["more_body"]
            yield HeldBody(bytes(held), receive, is_whole=not more)
        finally:
            self.size -= len(held)


async def _nothing_more() -> Any:
    await asyncio.get_running_loop().create_future()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to forward: `headers` are those that were sent, without the body's length; `client` is
    its client's address.
    """

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    client: str | None
    body: HeldBody

    def may_repeat(self) -> bool:
        """Whether the request may be executed twice without further effect."""
        if not self.body.is_whole:
            return False
        if self.method in _SAFE:
            return True
        path, _, _ = self.target.decode("latin-1").partition("?")
        return _may_repeat(self.method, path, self.headers)


def _may_repeat(method: str, path: str, headers: HeaderLines) -> bool:
    has_key = any(name == b"idempotency-key" for name, _ in headers)
    return has_key and (method, path) in _REPEATABLE


def payment_may_repeat(request: PlainRequest) -> bool:
    """Whether a plain request may be executed twice without further effect."""
    head = request.plain.head
    return _may_repeat(head.method, head.path, request.plain.sent)


def _plain_outgoing(request: PlainRequest) -> Outgoing:
    head = request.plain.head
    body = HeldBody(request.whole, _nothing_more, is_whole=True)
    return Outgoing(head.method, head.path.encode(), request.plain.sent, request.peer, body)


def outgoing(scope: HTTPScope, body: HeldBody) -> Outgoing:
    """Return a request to an ASGI application as it is forwarded."""
    query = scope["query_string"]
    return Outgoing(
        scope["method"],
        scope["raw_path"] + (b"?" + query if query else b""),
        tuple(each for each in scope["headers"] if each[0] != _LENGTH),
        scope["client"][0] if scope["client"] else None,
        body,
    )


class Forwarder:
    """Connections to the other nodes, for requests to the owner of one shard; `certificates` is a
    folder with the nodes' certificates (`node_context`). The peer closes a connection after
    `idle_s` seconds without a request.
    """

    def __init__(self, certificates: Path | None, idle_s: float, shard: int = 1) -> None:
        self._shard = str(shard).encode()
        self._context = None if certificates is None else node_context(certificates)
        # Closed here before the peer closes it.
        self._idle_s = idle_s / 2
        self._nodes: defaultdict[str, KnownNode] = defaultdict(KnownNode)

    async def forward_payment(self, address: str, request: PlainRequest) -> Forwarded:
        """Forward a plain request to the node at `address`, on the connection that all of them
        share. Raises as `forward`, by which it goes to a node that takes no payments so.
        """
        node = self._nodes[address]
        link = node.link
        if link is None or not link.is_usable(self._idle_s):
            try:
                link = await self._open_link(address, node)
            except OSError:
                return Forwarded.NOT_DONE
            if link is None:
                return await self.forward(address, _plain_outgoing(request), sending(request))
        if node.is_former:
            return Forwarded.NOT_DONE
        try:
            status, rest = await link.ask(request)
        except Broken:
            return Forwarded.UNKNOWN
        if status == NOT_DONE:
            return Forwarded.NOT_DONE
        request.send_on(status, rest)
        return Forwarded.ANSWERED

    async def _open_link(self, address: str, node: KnownNode) -> PaymentLink | None:
        """Return a link; all requests that wait for one at the same time get the same. Raises `OSError`."""
        if node.takes_no_link:
            return None
        if node.opening is None:
            opening = open_link(address, self._context, self._shard)
            node.opening = asyncio.create_task(opening)
            node.opening.add_done_callback(node.note_link)
        return await asyncio.shield(node.opening)

    async def forward(self, address: str, request: Outgoing, send: Send) -> Forwarded:
        """Forward a request to the node at `address`. Raises `Broken` if an answer is cut off after
        it began.
        """
        node = self._nodes[address]
        try:
            connection = node.take_idle(self._idle_s)
            if connection is None:
                # As a task: its time limit needs one, and a plain request has none.
                connecting = connect_to_node(NodeConnection, address, self._context)
                connection = await asyncio.create_task(connecting)
        except OSError:
            return Forwarded.NOT_DONE
        if node.is_former:
            connection.abort()
            return Forwarded.NOT_DONE
        node.asked.add(connection)
        try:
            head = _head(request, self._shard)
            return await _exchange(connection, request, head, send)
        finally:
            node.asked.discard(connection)
            if connection.is_reusable and not node.is_former:
                node.keep_idle(connection)
            else:
                connection.abort()

    def leave(self, address: str) -> None:
        """Note that the node no longer owns the journal; it may answer what it was sent for
        `GRACE_S` more.
        """
        node = self._nodes.pop(address, None)
        if node is not None:
            node.is_former = True
            for connection in node.idle:
                connection.abort()
            for connection in node.asked:
                asyncio.get_running_loop().call_later(GRACE_S, connection.abort)
            if node.link is not None:
                asyncio.get_running_loop().call_later(GRACE_S, node.link.close)

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes.values():
            for connection in (*node.idle, *node.asked):
                connection.abort()
            if node.link is not None:
                node.link.close()


@dataclass(slots=True)
class KnownNode:
    """The connections to a node: the idle ones, the last used at the end, those with a request, and
    the `link` for payments, which the node may not take. `is_former` is true once it no longer owns
    the journal.
    """

    idle: list[NodeConnection] = field(default_factory=list)
    asked: set[NodeConnection] = field(default_factory=set)
    link: PaymentLink | None = None
    opening: asyncio.Task[PaymentLink | None] | None = None
    takes_no_link: bool = False
    is_former: bool = False

    def note_link(self, opening: asyncio.Task[PaymentLink | None]) -> None:
        """Note what came of opening a link."""
        self.opening = None
        if opening.cancelled() or opening.exception() is not None:
            return
        if self.link is not None:
            # It was idle for too long.
            self.link.close()
        self.link = opening.result()
        self.takes_no_link = self.link is None
        if self.link is not None and self.is_former:
            self.link.close()

    def take_idle(self, idle_s: float) -> NodeConnection | None:
        """Return the idle connection that was used last; None if it was used too long ago."""
        now = asyncio.get_running_loop().time()
        while self.idle:
            connection = self.idle.pop()
            if connection.is_reusable and now - connection.used_at < idle_s:
                return connection
            connection.abort()
        return None

    def keep_idle(self, connection: NodeConnection) -> None:
        """Keep a connection for another request."""
        connection.used_at = asyncio.get_running_loop().time()
        self.idle.append(connection)


async def _exchange(
    connection: NodeConnection, request: Outgoing, head: bytes, send: Send
) -> Forwarded:
    try:
        await connection.ask(request.method, head, request.body.content())
        if connection.status == HTTPStatus.SERVICE_UNAVAILABLE and any(
            name.lower() == NOT_OWNER for name, _ in connection.headers
        ):
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
    leaving = asyncio.create_task(_end_with(request.body, connection))
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


def of_its_client(scope: HTTPScope) -> HTTPScope:
    """Return a node's request with the client's address, for limits per address and log lines."""
    client = next((value for name, value in scope["headers"] if name == CLIENT), b"")
    address = client_address(client)
    return scope if address is None else {**scope, "client": (address, 0)}


@lru_cache(maxsize=1024)
def client_address(header: bytes) -> str | None:
    """Return the client's address that a node tells, None where that is no address."""
    try:
        return str(ip_address(header.decode("latin-1")))
    except ValueError:
        return None


def node_context(certificates: Path, *, server: bool = False) -> ssl.SSLContext:
    """Return the TLS settings between nodes: `authority.pem` signed every node's `certificate.pem`,
    whose key is `key.pem`. Raises `OSError`.
    """
    purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
    context = ssl.create_default_context(purpose, cafile=str(certificates / "authority.pem"))
    context.load_cert_chain(certificates / "certificate.pem", certificates / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _head(request: Outgoing, shard: bytes) -> bytes:
    """Return a request's head, for the same target at another node."""
    body, length = request.body, b""
    if not body.is_whole:
        length = b"transfer-encoding: chunked\r\n"
    elif body.held or request.method not in _SAFE:
        length = b"content-length: %d\r\n" % len(body.held)
    lines = _header_lines(request.headers, request.client, shard)
    # HTTP/1.1 whatever the client speaks: nodes keep connections open and use chunks.
    return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (request.method.encode(), request.target, lines, length)


@lru_cache(maxsize=256)
def _header_lines(sent: tuple[tuple[bytes, bytes], ...], client: str | None, shard: bytes) -> bytes:
    """Return the lines of the headers that are forwarded; a client repeats the same ones."""
    headers = [each for each in _without_connection(sent) if each[0] not in (CLIENT, SHARD)]
    headers.append((SHARD, shard))
    if client is not None:
        headers.append((CLIENT, client.encode()))
    if all(name != b"host" for name, _ in headers):
        headers.append((b"host", b"tollkeeper"))
    # The parser accepts no header that could end its line.
    return b"".join(b"%b: %b\r\n" % each for each in headers)


def _without_connection(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_CONNECTION]
