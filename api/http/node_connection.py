"""One connection to another node, and one request after the other on it.

A client library's pool looks at every request and connection for each that comes: with 64 at once
that took 8 ms of a processor each. Nodes ask each other over few connections that stay, so nothing
is left to look for.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import cast
from urllib.parse import urlsplit

import httptools

SHARD = b"toll-shard"
"""A header of a request: the number of the journal whose owner is to answer."""
CONNECT_S = 1.0
"""How long a connection to another node may take."""
_MOST_HELD = 1 << 18
"""How many bytes of an answer are held before the other node has to wait."""


class Broken(ConnectionError):  # noqa: N818 - named for what happened
    """The connection ended before the answer was whole."""


class NodeConnection(asyncio.Protocol):
    """`status` and `headers` are those of the answer to the last request; `is_whole` is true once all
    of it has arrived. `used_at` (by the loop's clock) is for who keeps idle connections."""

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
        """Whether another request can follow."""
        return self.is_whole and self._is_sent and self._stays and not self._is_lost

    async def ask(self, method: str, head: bytes, body: bytes | AsyncIterator[bytes]) -> None:
        """Sends a request, done once the head of its answer is there; `head` is all before the body,
        which is sent in chunks where it comes part by part. Raises `Broken`."""
        self.headers, self._parts, self._held = [], [], 0
        self.is_whole = self._has_head = self._is_sent = False
        self._is_bodiless = method == "HEAD"
        if isinstance(body, bytes):
            self._write(head + body)
        else:
            self._write(head)
            async for part in body:
                await self._until_drained()
                # An owner that has refused the request reads no more of it.
                if self._has_head:
                    return
                if part:
                    self._write(b"%x\r\n%b\r\n" % (len(part), part))
            self._write(b"0\r\n\r\n")
        self._is_sent = True
        while not self._has_head:
            await self._change()

    async def part(self) -> bytes:
        """What has come of the answer's body since the last call, empty at its end. Raises `Broken`."""
        while not self._parts and not self.is_whole:
            await self._change()
        if self._held > _MOST_HELD and not self._is_lost:
            self._own_transport.resume_reading()
        parts, self._parts, self._held = self._parts, [], 0
        return b"".join(parts)

    def abort(self) -> None:
        """Ends the connection; who waits for an answer gets `Broken`."""
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
        """Until anything has happened."""
        if self._is_lost:
            raise Broken("the other node has ended the connection")
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the transport tells.

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

    # What the parser tells.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True
        # The parser would take what follows the head of an answer to `HEAD` for its body.
        self._stays = self._parser.should_keep_alive() and not self._is_bodiless
        self.is_whole = self._is_bodiless

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._held += len(body)

    def on_message_complete(self) -> None:
        self.is_whole = True


async def connect_to_node(address: str, context: ssl.SSLContext | None) -> NodeConnection:
    """A connection to the node at an address, `http` or `https`. Raises `OSError`."""
    loop, node = asyncio.get_running_loop(), urlsplit(address)
    tls = context or ssl.create_default_context() if node.scheme == "https" else None
    host, port = node.hostname or "", node.port or 0
    async with asyncio.timeout(CONNECT_S):
        _, connection = await loop.create_connection(NodeConnection, host, port, ssl=tls)
    return connection
