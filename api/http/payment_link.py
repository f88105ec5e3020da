"""A connection that sends payments to the node that owns their shard, many at once.

The payments that a node reads in one turn of its event loop go in one write, and so do the answers
of one commit: between nodes, a payment costs hardly any system calls.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, cast

from tollkeeper.api.http.frames import (
    ACCEPTED,
    MOST_HEADS,
    NOT_DONE,
    encode_head,
    encode_sent,
    take_answered,
    upgrade_request,
)
from tollkeeper.api.http.node_connection import CONNECT_S, Broken, connect_to_node
from tollkeeper.api.http.plain import PlainHead, SteppedRequest

_NO_ROOM: Final = b"HTTP/1.1 503 "


class PaymentLink(asyncio.Protocol):
    """`opening` says whether the other node takes payments this way, once it has answered.

    What waits to be written is bounded by the bodies that a node holds (`Hold`), so nothing waits
    for the other node to read.
    """

    def __init__(self, shard: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self.opening: asyncio.Future[bool] = self._loop.create_future()
        self._used_at = self._loop.time()
        self._shard = shard
        self._transport: asyncio.Transport | None = None
        self._is_closed = False
        self._number = 0
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        # The numbers of sent heads, by the bytes that a client repeats and its address.
        self._heads: dict[tuple[bytes, bytes, str | None], int] = {}
        self._gathered: list[bytes] = []
        self._rest = b""

    @property
    def is_busy(self) -> bool:
        """Whether payments wait for an answer."""
        return bool(self._waiting)

    def is_usable(self, idle_s: float) -> bool:
        """Whether payments can be sent: not after `idle_s` seconds without any."""
        is_recent = self.is_busy or self._loop.time() - self._used_at < idle_s
        return is_recent and not self._is_closed

    async def ask(self, request: SteppedRequest) -> tuple[int, bytes]:
        """Send a payment; return its answer's status and rest, `NOT_DONE` if it was certainly not
        executed. Raises `Broken`.
        """
        if self._is_closed:
            return NOT_DONE, b""
        self._used_at = self._loop.time()
        self._number += 1
        answered: asyncio.Future[tuple[int, bytes]] = self._loop.create_future()
        self._waiting[self._number] = answered
        number, head = self._head_of(request.plain, request.peer)
        if not self._gathered:
            self._loop.call_soon(self._write)
        self._gathered.append(encode_sent(self._number, number, head, request.whole))
        return await answered

    def close(self) -> None:
        """Close the connection; payments that wait for an answer get `Broken`."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()

    def _head_of(self, plain: PlainHead, peer: str | None) -> tuple[int, bytes]:
        """Return a head's number, and the head if the other node doesn't have it yet."""
        if not plain.before:
            return 0, encode_head(plain.head.method, plain.head.path, peer, plain.sent)
        repeated = (plain.before, plain.after, peer)
        number = self._heads.get(repeated)
        if number is not None:
            return number, b""
        if len(self._heads) == MOST_HEADS:
            self._heads.clear()
        self._heads[repeated] = number = len(self._heads) + 1
        return number, encode_head(plain.head.method, plain.head.path, peer, plain.sent)

    def _write(self) -> None:
        if self._transport is not None and not self._is_closed:
            self._transport.write(b"".join(self._gathered))
        self._gathered = []

    def _open(self) -> bool:
        """Read the answer to the upgrade; return whether frames follow it."""
        head, blank, rest = self._rest.partition(b"\r\n\r\n")
        if not blank:
            return False
        self._rest = rest
        if head.startswith(_NO_ROOM):
            self.opening.set_exception(Broken("the other node takes no connection for now"))
            return False
        is_accepted = head + blank == ACCEPTED
        self.opening.set_result(is_accepted)
        return is_accepted

    def _settle(self, number: int, status: int, rest: bytes) -> None:
        answered = self._waiting.pop(number, None)
        if answered is not None and not answered.done():
            answered.set_result((status, rest))

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(upgrade_request(self._shard))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_closed = True
        if not self.opening.done():
            self.opening.set_exception(Broken("the other node has ended the connection"))
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(Broken("the other node has ended the connection"))
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._rest = self._rest + data if self._rest else data
        if not self.opening.done() and not self._open():
            return
        try:
            frames, self._rest = take_answered(self._rest)
        except ValueError:
            self.close()
            return
        for number, status, rest in frames:
            if number:
                self._settle(number, status, rest)
            else:
                self._leave()

    def _leave(self) -> None:
        """The other node leaves: what it has not answered, it has not executed."""
        for number in list(self._waiting):
            self._settle(number, NOT_DONE, b"")
        self.close()


async def open_link(
    address: str, context: ssl.SSLContext | None, shard: bytes
) -> PaymentLink | None:
    """Return a link to the node at an address; None if the node takes no payments this way. Raises
    `OSError`.
    """
    async with asyncio.timeout(CONNECT_S):
        link = await connect_to_node(lambda: PaymentLink(shard), address, context)
        try:
            is_open = await link.opening
        except BaseException:
            link.close()
            raise
    if is_open:
        return link
    link.close()
    return None
