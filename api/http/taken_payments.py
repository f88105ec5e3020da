"""Payments that another node sends, on a connection that it has upgraded: decide and answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from structlog import get_logger
from uvicorn.server import ServerState

from tollkeeper.api.http.dispatch import Find
from tollkeeper.api.http.frames import (
    ACCEPTED,
    LEAVING,
    NOT_DONE,
    SentFrame,
    decode_head,
    encode_answered,
    take_sent,
)
from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.plain import (
    CLOSE,
    Answering,
    HeaderLines,
    PlainHead,
    SteppedRequest,
    lines_and_body,
    plain_head,
)

AnswerTaken: TypeAlias = Callable[["TakenPayment"], Answering]

_AGREE_S: Final = 1.0
"""How long the other node has to read the last answers."""


class PaymentLinks:
    """Takes connections over from the listener for nodes. `answer_of` returns what answers the payments
    of a shard; a connection without payments for `idle_s` seconds is closed.
    """

    def __init__(
        self, find: Find, answer_of: Callable[[bytes], AnswerTaken], idle_s: float
    ) -> None:
        self._find = find
        self._answer_of = answer_of
        self._idle_s = idle_s

    def take(
        self, sent: HeaderLines, transport: asyncio.Transport, server_state: ServerState
    ) -> None:
        """Accept a request for an upgrade, whose headers were `sent`."""
        answer = self._answer_of(dict(sent).get(SHARD, b""))
        taking = TakenPayments(self._find, answer, self._idle_s, transport, server_state)
        transport.set_protocol(taking)
        transport.write(ACCEPTED)


class TakenPayments(asyncio.Protocol):
    """The payments of one connection."""

    def __init__(
        self,
        find: Find,
        answer: AnswerTaken,
        idle_s: float,
        transport: asyncio.Transport,
        server_state: ServerState,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._find = find
        self._answer = answer
        self._idle_s = idle_s
        self._transport = transport
        self._server_state = server_state
        self._heads: dict[int, tuple[PlainHead, str | None]] = {}
        self._unanswered = 0
        self._gathered: list[bytes] = []
        self._rest = b""
        self._is_ending = False
        self._is_idle = False
        self._looking = self._loop.call_later(idle_s, self._look)
        # As the server's other connections, which it tells to shut down.
        server_state.connections.add(self)  # type: ignore[arg-type]

    def answer(self, number: int, status: int, rest: bytes) -> None:
        """Send an answer, together with the others of this turn of the event loop."""
        self._unanswered -= 1
        if not self._gathered:
            self._loop.call_soon(self._write)
        self._gathered.append(encode_answered(number, status, rest))

    def shutdown(self) -> None:
        """Take no more payments, and close the connection once those taken are answered."""
        self._is_ending = True
        self._loop.call_soon(self._write)

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _write(self) -> None:
        if self._transport.is_closing():
            return
        frames, self._gathered = self._gathered, []
        is_last = self._is_ending and not self._unanswered
        if is_last:
            frames.append(LEAVING)
        self._transport.write(b"".join(frames))
        if is_last:
            self._transport.close()
            self._loop.call_later(_AGREE_S, self._transport.abort)

    def _take(self, frame: SentFrame) -> None:
        """Begin to answer a payment. Raises `ValueError` for a frame that no node sends."""
        known = self._heads.get(frame.head_number)
        if frame.head:
            known = self._read_head(frame.head)
            if frame.head_number:
                self._heads[frame.head_number] = known
        if known is None:
            raise ValueError("nothing is known of this head")
        self._unanswered += 1
        taken = TakenPayment(self, frame.number, *known, frame.body, self._server_state)
        taken.run(self._answer(taken))

    def _read_head(self, head: bytes) -> tuple[PlainHead, str | None]:
        method, path, peer, sent = decode_head(head)
        plain = plain_head(self._find, method, path, sent)
        if plain is None:
            raise ValueError("this is no payment's head")
        return plain, peer

    def _look(self) -> None:
        """Close the connection if nothing has come since the last look."""
        if self._is_idle and not self._unanswered:
            self.shutdown()
        else:
            self._is_idle = True
            self._looking = self._loop.call_later(self._idle_s, self._look)

    # Callbacks of the transport.

    def connection_lost(self, _exc: Exception | None) -> None:
        self._looking.cancel()
        self._server_state.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._is_idle = False
        try:
            frames, self._rest = take_sent(self._rest + data if self._rest else data)
            for frame in frames:
                self._take(frame)
        except ValueError as error:
            get_logger().warning("link_given_up", reason=str(error))
            self.abort()

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()


class TakenPayment(SteppedRequest):
    """A payment that another node sent: `number` is what its answer repeats."""

    __slots__ = ("_link", "_number")

    def __init__(
        self,
        link: TakenPayments,
        number: int,
        plain: PlainHead,
        peer: str | None,
        body: bytes,
        server_state: ServerState,
    ) -> None:
        super().__init__(plain, body, peer, server_state)
        self._link = link
        self._number = number

    def send(self, status: int, headers: HeaderLines, body: bytes) -> None:
        # The other node's connection to its client stays, and so does this one.
        lasting = [each for each in headers if each != CLOSE]
        self._link.answer(self._number, status, lines_and_body(lasting, body))

    def refuse(self) -> None:
        """Answer that this node does not own the journal."""
        self._link.answer(self._number, NOT_DONE, b"")

    def break_off(self) -> None:
        self._link.abort()
