"""One connection to another node, with one request at a time on it.

A client library's pool examines all requests and connections for each request: 8 ms of a processor
with 64 requests at once. Nodes use few, permanent connections, so nothing needs examining.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, cast
from urllib.parse import urlsplit

import httptools

SHARD = b"toll-shard"
"""A request header: the number of the shard whose owner is to answer."""
CONNECT_S = 1.0
"""The time limit for connecting to another node."""
_UNCONFIRMED_S = 10
"""How long a machine may confirm nothing before a connection to it counts as ended: without this, a
machine that is cut off would be waited for until TCP gives up, after a quarter of an hour.
"""
_END_IF_SILENT = {
    getattr(socket, name): value
    for name, value in (
        ("TCP_KEEPIDLE", _UNCONFIRMED_S // 2),
        ("TCP_KEEPINTVL", 1),
        ("TCP_KEEPCNT", _UNCONFIRMED_S // 2),
        ("TCP_USER_TIMEOUT", _UNCONFIRMED_S * 1000),
    )
    if hasattr(socket, name)
}
_MOST_HELD = 1 << 18
"""The most bytes of an answer that are buffered before the other node has to wait."""

Made = TypeVar("Made", bound=asyncio.Protocol)


class Broken(ConnectionError):  # noqa: N818 - named for what happened
    """The connection ended before the answer was complete."""


class NodeConnection(asyncio.Protocol):
    """`status` and `headers` are those of the answer to the last request; `is_whole` is true once
    all of it has arrived. `used_at` (event loop time) is set when the connection becomes idle.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_whole = True
        self.used_at = 0.0
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._has_head = self._stays = self._is_sent = self._is_bodiless = False
        self._is_lost = self._is_full = False
        self._parts: list[bytes] = []
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent."""
        return self.is_whole and self._is_sent and self._stays and not self._is_lost

    async def ask(self, method: str, head: bytes, body: bytes | AsyncIterator[bytes]) -> None:
        """Send a request and wait for the head of its answer; `head` is everything before the body,
        and an iterated body is sent in chunks. Raises `Broken`.
        """
        self.headers, self._parts, self._held = [], [], 0
        self.is_whole = self._has_head = self._is_sent = False
        self._is_bodiless = method == "HEAD"
        if isinstance(body, bytes):
            self._write(head + body)
        else:
            self._write(head)
            async for part in body:
                await self._until_drained()
                # An owner that refuses the request stops reading it.
                if self._has_head:
                    return
                if part:
                    self._write(b"%x\r\n%b\r\n" % (len(part), part))
            self._write(b"0\r\n\r\n")
        self._is_sent = True
        while not self._has_head:
            await self._change()

    async def part(self) -> bytes:
        """Return what has arrived of the answer's body since the last call; empty at its end.
        Raises `Broken`.
        """
        while not self._parts and not self.is_whole:
            await self._change()
        if self._held > _MOST_HELD and not self._is_lost:
            self._own_transport.resume_reading()
        parts, self._parts, self._held = self._parts, [], 0
        return b"".join(parts)

    def abort(self) -> None:
        """Close the connection; a request that waits for its answer gets `Broken`."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def _own_transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _write(self, data: bytes) -> None:
        if self._is_lost:
            raise Broken("the other node has ended the connection")
        self._own_transport.write(data)

    async def _until_drained(self) -> None:
        while self._is_full and not self._has_head:
            await self._change()

    async def _change(self) -> None:
        """Wait until anything has happened."""
        if self._is_lost:
            raise Broken("the other node has ended the connection")
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_lost = True
        self._tell()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()
        if self._held > _MOST_HELD:
            self._own_transport.pause_reading()
        self._tell()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._tell()

    # Callbacks of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True
        # The parser would read what follows the answer to `HEAD` as its body.
        self._stays = self._parser.should_keep_alive() and not self._is_bodiless
        self.is_whole = self._is_bodiless

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._held += len(body)

    def on_message_complete(self) -> None:
        self.is_whole = True


async def connect_to_node(
    make: Callable[[], Made], address: str, context: ssl.SSLContext | None
) -> Made:
    """Connect to the node at an `http` or `https` address, with a protocol. Raises `OSError`."""
    loop, node = asyncio.get_running_loop(), urlsplit(address)
    tls = context or ssl.create_default_context() if node.scheme == "https" else None
    host, port = node.hostname or "", node.port or 0
    async with asyncio.timeout(CONNECT_S):
        transport, connection = await loop.create_connection(make, host, port, ssl=tls)
    connected = transport.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _END_IF_SILENT.items():
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
