"""One connection: what isn't HTTP is answered in the one error body, and nobody holds it for long."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from litestar.types import Receive, Scope, Send
from structlog import get_logger
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tollkeeper.api.http.errors import Problem, answer, error_body, unavailable
from tollkeeper.engine.intake.violations import Violation


async def crowded(_scope: Scope, _receive: Receive, send: Send) -> None:
    """The application of a connection beyond the limit."""
    get_logger().warning("refused", status=503)
    problem = unavailable("too many connections are open")
    await answer(
        send,
        Problem(problem.status, problem.violations, [*problem.headers, (b"connection", b"close")]),
    )


class Connection(HttpToolsProtocol):
    """Beyond `limit_concurrency` connections a request is refused. A head has `timeout_keep_alive`
    seconds to arrive, from the connection's start or from the head's own, and about `head_bytes`;
    a body that doesn't come with its head has `body_seconds`."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        head_bytes: int,
        body_seconds: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
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
        if self._most is not None and len(self.connections) > self._most:
            self.app = crowded
        self._await_head()

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
        self._due = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _is_here(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up_body(self) -> None:
        self._due = None
        if self.cycle.response_started:
            self.transport.close()
        else:
            # Whoever reads the body sees this, and answers.
            self.cycle.scope["state"]["late"] = True
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
