"""One connection: what isn't HTTP is answered in the one error body, and nobody holds it for long."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from http import HTTPStatus
from typing import Any

from litestar.types import Receive, Scope, Send
from structlog import get_logger
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tollkeeper.api.http.errors import Problem, answer, error_body, unavailable
from tollkeeper.api.http.request import state_of
from tollkeeper.engine.intake.violations import Violation

RESERVED = frozenset({b"/health/live", b"/health/ready", b"/metrics"})
"""Paths that are answered on connections beyond the limit too."""
SLOW_S = 1.0
"""A head that is on its way for longer may be given up for the others of its address."""


class Heads:
    """The connections whose next head is on its way, the one that waits for longest first.

    `per_address` is how many an address may have before its slow ones are given up.
    """

    def __init__(self, per_address: int) -> None:
        self._per_address = per_address
        self._begun: dict[Connection, float] = {}
        self._of: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def begin(self, connection: Connection, address: str, now: float) -> None:
        """A head is awaited; its address' slow ones are given up when there are too many."""
        self._begun[connection] = now
        of = self._of[address]
        of[connection] = None
        if len(of) > self._per_address:
            oldest = next(iter(of))
            if self._begun[oldest] < now - SLOW_S:
                oldest.give_up_head("heads_per_address")

    def end(self, connection: Connection, address: str) -> None:
        """The head is whole, or the connection gone."""
        if self._begun.pop(connection, None) is None:
            return
        of = self._of[address]
        del of[connection]
        if not of:
            del self._of[address]

    def give_up_oldest(self, but: Connection) -> bool:
        """Closes the connection whose head is on its way for longest; False without any."""
        for connection in self._begun:
            if connection is not but:
                connection.give_up_head("connections")
                return True
        return False


async def crowded(_scope: Scope, _receive: Receive, send: Send) -> None:
    """The application of a connection beyond the limit."""
    get_logger().warning("refused", status=503)
    problem = unavailable("too many connections are open")
    await answer(
        send,
        Problem(problem.status, problem.violations, [*problem.headers, (b"connection", b"close")]),
    )


class Connection(HttpToolsProtocol):
    """Beyond `limit_concurrency` connections the one closes whose head is slowest; without any, a
    request is refused, but for health and figures. A head has `timeout_keep_alive`
    seconds to arrive, from the connection's start or from the head's own, and about `head_bytes`;
    a body that doesn't come with its head has `body_seconds`."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        heads: Heads,
        head_bytes: int,
        body_seconds: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._heads = heads
        self._address = ""
        self._most_in_head = head_bytes
        self._body_seconds = body_seconds
        self._most = self.limit_concurrency
        # uvicorn would refuse in a body of its own, and without `Retry-After`.
        self.limit_concurrency = None
        self._in_head = True
        self._head_bytes = 0
        self._in_body = False
        # When the head or the body that is on its way has to be whole.
        self._due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._await_head()
        if (
            self._most is not None
            and len(self.connections) > self._most
            and not self._heads.give_up_oldest(self)
        ):
            self.app = self._answer_reserved

    async def _answer_reserved(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.config.loaded_app if scope.get("raw_path") in RESERVED else crowded
        await app(scope, receive, send)

    def give_up_head(self, limit: str) -> None:
        """Closes the connection for the sake of others; `limit` is the setting that asks for it."""
        get_logger().warning("connection_given_up", limit=limit, peer=self._address)
        self._is_here()
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_here()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._most_in_head:
                message = f"a head has at most {self._most_in_head} bytes"
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    Violation("headers", "too_large", message),
                )
                return
        self._await_more()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that has sent all it wants to may close its side, and is answered still."""
        last = self.pipeline[0][0] if self.pipeline else self.cycle
        if last is None or last.more_body or last.response_complete:
            return False
        last.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._in_body = True
        self._is_here()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_body = False
        self._is_here()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # For the next head uvicorn has a timer of its own, which ends with the first byte.
        if self._in_body:
            self._await_more()

    def _unsupported_upgrade_warning(self) -> None:
        """A request to upgrade is answered as any other, and is nothing to warn of."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        self._refuse(
            HTTPStatus.BAD_REQUEST, Violation("body", "malformed_request", "this is not HTTP")
        )

    def _await_more(self) -> None:
        """Nothing that the client owes is waited for without end: a head, a body, the next head."""
        if self._due is not None or self.pipeline:
            return
        if self._in_body:
            self._due = self.loop.call_later(self._body_seconds, self._give_up_body)
        elif self._in_head or self.cycle.response_complete:
            self._await_head()

    def _await_head(self) -> None:
        self._heads.begin(self, self._address, self.loop.time())
        self._due = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _is_here(self) -> None:
        self._heads.end(self, self._address)
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up_body(self) -> None:
        self._due = None
        if self.cycle.response_started:
            self.transport.close()
        else:
            # Whoever reads the body sees this, and answers.
            state_of(self.cycle.scope).late = True  # type: ignore[arg-type]
            self.cycle.message_event.set()

    def _refuse(self, status: HTTPStatus, violation: Violation) -> None:
        get_logger().warning("refused", status=int(status))
        body = error_body([violation])
        head = (
            f"HTTP/1.1 {status:d} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
