"""One client connection: anything that isn't HTTP gets the one error body, and slow clients are cut
off.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from http import HTTPStatus
from itertools import chain
from typing import Any, cast
from urllib.parse import unquote

import httptools
from litestar.types import Receive, Scope, Send
from structlog import get_logger
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tollkeeper.api.http.cycle import Awaited, Cycle
from tollkeeper.api.http.errors import Problem, answer, error_body, unavailable
from tollkeeper.api.http.frames import UPGRADE
from tollkeeper.api.http.plain import PlainHead, PlainPayments, PlainRequest
from tollkeeper.api.http.request import REQUEST_ID, has_state, request_id, state_of
from tollkeeper.api.http.taken_payments import PaymentLinks
from tollkeeper.engine.intake.violations import Violation

RESERVED = frozenset({b"/health/live", b"/health/ready", b"/metrics"})
"""Paths that are answered even on connections past the limit."""
SLOW_S = 1.0
"""A client that keeps the service waiting for longer than this may be dropped in favour of others."""
_MOST_LEARNED = 8
"""The most heads that are learned on one connection: learning is in vain where all heads differ."""
_BEHIND_HEAD_S = 0.005
"""How long to wait for the body of an otherwise plain request: many clients send head and body
separately.
"""
LINGER_S = 2.0
"""How long a refused client may keep sending; what it sends is discarded."""
_MOST_DISCARDED = 16 * 1024 * 1024
"""The most bytes that a refused client may send before its connection is closed."""
_AGREE_S = 0.2
"""How long the peer of an idle TLS connection has to confirm its end."""
_LONGEST_TARGET = 65_535
"""The most bytes of path and query that httptools parses."""

_END_OF_HEAD = b"\r\n\r\n"
_LEAST_STEP = 256
"""The fewest bytes of a body that are parsed at once, as it may consist of empty lines."""

_AROUND_TARGET = len("GET  HTTP/1.1\r\n\r\n")
_AROUND_HEADER = len(": \r\n")


class HeadTooLargeError(Exception):
    """Raised to stop parsing a head."""


class Waiting:
    """The connections whose clients are to send something, the longest waiting first: they are closed
    when too many are open.

    `heads_per_address` is how many connections of one address may wait for a head before its slow
    ones are closed.
    """

    def __init__(self, heads_per_address: int) -> None:
        self._heads_per_address = heads_per_address
        self._heads: dict[Connection, float] = {}
        self._heads_of: defaultdict[str, dict[Connection, None]] = defaultdict(dict)
        self._others: dict[Connection, float] = {}

    def begin_head(self, connection: Connection, address: str, now: float) -> None:
        """Register a connection that waits for a head; past the address's limit, its slowest one is
        closed.
        """
        self._heads[connection] = now
        of_address = self._heads_of[address]
        of_address[connection] = None
        if len(of_address) > self._heads_per_address:
            oldest = next(iter(of_address))
            if self._heads[oldest] < now - SLOW_S:
                oldest.give_up("heads_per_address")

    def begin(self, connection: Connection, now: float) -> None:
        """Register a connection that waits for the rest of a body, or is idle after an answer."""
        self._others[connection] = now

    def end(self, connection: Connection, address: str) -> None:
        """Unregister a connection that has what it waited for, or is gone."""
        if self._others.pop(connection, None) is not None:
            return
        if self._heads.pop(connection, None) is None:
            return
        of_address = self._heads_of[address]
        del of_address[connection]
        if not of_address:
            del self._heads_of[address]

    def give_up_longest(self, but: Connection, now: float) -> bool:
        """Close the connection that has waited longest; one that waits for a body, or is idle, only
        if it is slow. Return False if there is none.
        """
        longest = next((each for each in self._heads if each is not but), None)
        other = next(iter(self._others), None)
        if other is not None:
            since = self._others[other]
            if since < now - SLOW_S and (longest is None or since < self._heads[longest]):
                longest = other
        if longest is None:
            return False
        longest.give_up("connections")
        return True


async def answer_crowd(scope: Scope, _receive: Receive, send: Send) -> None:
    """The ASGI application for a connection past the limit."""
    id_ = request_id(dict(reversed([*scope["headers"]])))
    get_logger().warning("refused", status=503, request_id=id_.decode())
    problem = unavailable("too many connections are open")
    headers = [*problem.headers, (b"connection", b"close"), (REQUEST_ID, id_)]
    await answer(send, Problem(problem.status, problem.violations, headers))


def _split_target(target: bytes) -> tuple[str, bytes, bytes]:
    """Return a target's path (decoded and raw) and query. Raises httptools' errors."""
    parsed = httptools.parse_url(target)
    return unquote(parsed.path.decode("ascii")), parsed.path, parsed.query or b""


class Connection(HttpToolsProtocol):
    """A client's connection.

    Past `limit_concurrency` connections, the one that has waited longest for its client is closed;
    if there is none, the requests on the new one are refused, except for health and metrics. A head
    must arrive within `timeout_keep_alive` seconds and have at most `head_bytes`. A body that
    doesn't come with its head must arrive within `body_seconds`, and a client that reads nothing of
    its answer for as long is disconnected.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        waiting: Waiting,
        head_bytes: int,
        body_seconds: float,
        payments: PlainPayments | None = None,
        links: PaymentLinks | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting = waiting
        self._payments = payments
        self._links = links
        # A request that is plain as far as it has arrived, and its body so far.
        self._plain: PlainHead | None = None
        self._body = b""
        self._plain_due: asyncio.TimerHandle | None = None
        # How many heads of plain requests that came alone were learned from this client.
        self._learned = 0
        # A complete plain request; it is started once all received data is parsed.
        self._whole: PlainRequest | None = None
        self._address = ""
        self._head_bytes = head_bytes
        self._body_seconds = body_seconds
        self._most_connections = self.limit_concurrency
        # uvicorn's own refusal has another body and no `Retry-After`.
        self.limit_concurrency = None
        self._in_head = True
        # The bytes since the last message ended: the size so far of an incomplete head.
        self._arrived = 0
        self._in_body = False
        # The bytes of a body's frame, such as trailers, since the last bytes of the body itself.
        self._in_frame = 0
        # What was received behind a request that waits for the one before it.
        self._unparsed = b""
        # Whether the client closed its side while there was such a rest.
        self._has_ended = False
        # The head, as it is parsed again, of a request to upgrade.
        self._upgrade: bytes | None = None
        # The request that is being answered while one behind it waits.
        self._before: RequestResponseCycle | None = None
        # The bytes discarded from a refused client; None if it wasn't refused.
        self._discarded: int | None = None
        # The deadline of the head or body being received.
        self._due: asyncio.TimerHandle | None = None
        # When to check next whether the client reads its answers; None while none waits to be sent.
        self._taking_due: asyncio.TimerHandle | None = None
        # Since when the connection has been idle; None while there is a request or part of one.
        self._idle_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._await_head()
        if (
            self._most_connections is not None
            and len(self.connections) > self._most_connections
            and not self._waiting.give_up_longest(self, self.loop.time())
        ):
            self.app = self._answer_reserved
            self._payments = self._links = None

    async def _answer_reserved(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.config.loaded_app if scope.get("raw_path") in RESERVED else answer_crowd
        await app(scope, receive, send)

    def give_up(self, limit: str) -> None:
        """End the connection in favour of others; `limit` is the name of the setting, for the log."""
        get_logger().warning("connection_given_up", limit=limit, peer=self._address)
        self._end_deadline()
        self._unset_keepalive_if_required()
        # Its place is needed now, whether or not the client takes its last answer.
        self.transport.abort()

    def shutdown(self) -> None:
        self._leave_plain()
        super().shutdown()
        if self.transport.is_closing() and self.scheme == "https":
            # TLS waits for the peer to confirm, which an idle client may never do.
            self.loop.call_later(_AGREE_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave_plain()
        super().connection_lost(exc)
        if self._before is not None:
            # uvicorn tells only the last request that was parsed.
            self._before.disconnected = True
            self._before.message_event.set()
            self._before = None
        self._end_watch()
        self._unparsed = b""
        self._end_deadline()
        self._unset_keepalive_if_required()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def data_received(self, data: bytes) -> None:
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > _MOST_DISCARDED:
                self._close()
            return
        if self._unparsed or self.pipeline:
            self._unparsed += data
            self.flow.pause_reading()
            return
        self._unset_keepalive_if_required()
        is_within = self._arrived or self._in_head or self._in_body
        if self._payments is not None and not is_within and self._takes_plain():
            learned = self._payments.find_learned(data)
            if learned is not None:
                self._end_deadline()
                self._begin_plain(*learned)
                self._start_whole()
                return
        self._arrived += len(data)
        is_alone = self._arrived == len(data)
        self._parse(data)
        if self._plain is not None:
            if self._plain_due is None:
                self._plain_due = self.loop.call_later(_BEHIND_HEAD_S, self._begin_cycle)
        elif is_alone and self._whole is not None and self._learned < _MOST_LEARNED:
            assert self._payments is not None
            self._learned += 1
            self._payments.learn(self._whole.plain, data)
        self._look_at_rest()
        if self._whole is not None:
            self._start_whole()

    def _parse(self, data: bytes) -> None:
        """Parse what was received, up to a request that has to wait for the one before it: parsed, a
        short request takes a hundred times its bytes.
        """
        start = 0
        while start < len(data) and not self.pipeline and self._takes_more():
            # With each step at most one head ends, or a few behind a body.
            least = _LEAST_STEP if self._in_body else 0
            end = data.find(_END_OF_HEAD, start + least)
            end = len(data) if end < 0 else end + len(_END_OF_HEAD)
            self._in_frame += end - start
            self._feed(data[start:end])
            start = end
        self._unparsed = data[start:] if self._takes_more() else b""

    def _takes_more(self) -> bool:
        return self._discarded is None and not self.transport.is_closing()

    def _parse_rest(self) -> None:
        if not self._takes_more():
            return
        data, self._unparsed = self._unparsed, b""
        self.data_received(data)
        if not self._unparsed:
            self.flow.resume_reading()
            if self._has_ended and not self.eof_received():
                self._close()

    def _feed(self, data: bytes) -> None:
        """Pass data to the parser. If another node requests an upgrade, the connection becomes a link
        for its payments. Any other request to upgrade is answered as if it requested none: the
        parser assumes that it has no body, so it gets the head again without the upgrade.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._refuse_malformed()
        except httptools.HttpParserUpgrade as upgrading:
            if self._upgrade is not None:
                head, self._upgrade = self._upgrade, None
                if self._links is not None and UPGRADE in self.headers:
                    # Once this class has processed all that was received.
                    self.loop.call_soon(self._give_away, self._links)
                    return
                self.parser = httptools.HttpRequestParser(self)
                self._feed(head + data[upgrading.args[0] :])

    def _give_away(self, links: PaymentLinks) -> None:
        if not self.transport.is_closing():
            self._end_deadline()
            self.connections.discard(self)
            links.take(self.headers, self.transport, self.server_state)

    def _start_whole(self) -> None:
        assert self._whole is not None
        whole, self._whole = self._whole, None
        whole.start()

    def _look_at_rest(self) -> None:
        if not self._takes_more():
            return
        size = self._arrived if self._in_head else self._in_frame if self._in_body else 0
        if size > self._head_bytes:
            self._refuse_head()
            return
        self._await_more()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client may close its side after sending its request; it is still answered."""
        if self._unparsed:
            self._has_ended = True
            return True
        last = self.pipeline[0][0] if self.pipeline else self.cycle
        if last is None or last.more_body or last.response_complete:
            self._watch_taking()
            return False
        last.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are not part of the head (RFC 9110, section 6.5.1).
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._upgrade = self._head_without_upgrade()
            return
        self._in_head = False
        self._in_body = True
        self._in_frame = 0
        self._end_deadline()
        if self._head_size() > self._head_bytes:
            raise HeadTooLargeError
        self._plain = self._find_plain()
        if self._plain is None:
            self._begin_cycle()

    def _head_without_upgrade(self) -> bytes:
        line = b"%b %b HTTP/%b\r\n" % (
            self.parser.get_method(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        kept = (b"%b: %b\r\n" % each for each in self.headers if each[0] != b"upgrade")
        return b"".join([line, *kept, b"\r\n"])

    def _find_plain(self) -> PlainHead | None:
        """Return the head as a plain request's, if it can be one so far."""
        if (
            self._payments is None
            or not self._takes_plain()
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
        ):
            return None
        return self._payments.find(self.parser.get_method(), self.url, self.headers)

    def _takes_plain(self) -> bool:
        """Whether no earlier request is unanswered, and the client reads its answers."""
        before = self.cycle
        return (before is None or before.response_complete) and not self.flow.write_paused

    def _leave_plain(self) -> None:
        """Pass an incomplete plain request to the ordinary way."""
        if self._plain is not None:
            self._begin_cycle()

    def _end_plain(self) -> bytes:
        """Stop treating the request as plain; returns the body received so far."""
        body, self._body, self._plain = self._body, b"", None
        if self._plain_due is not None:
            self._plain_due.cancel()
            self._plain_due = None
        return body

    def _begin_plain(self, plain: PlainHead, body: bytes) -> None:
        assert self._payments is not None
        self._whole = PlainRequest(self._payments, plain, body, self)
        self.cycle = cast("RequestResponseCycle", self._whole)

    def _begin_cycle(self) -> None:
        """The ordinary way: start the application with the request; the body follows as it arrives."""
        version = self.parser.get_http_version()
        path, raw_path, query = _split_target(self.url)
        scope: Any = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "root_path": self.root_path,
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        before = self.cycle
        self.cycle = cycle = Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=cast("asyncio.Event", Awaited()),
            # HTTP/1.0 knows no interim answers (RFC 9110, section 15.2).
            expect_100_continue=version != "1.0" and self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        cycle.tasks, cycle.leave = self.tasks, self.leave
        cycle.body += self._end_plain()
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            # A pipelined request waits until the one before it is answered.
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))
            self._before = before

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, Cycle)
        # Named explicitly, since asyncio would format a name for each task.
        cycle.task = asyncio.Task(cycle.run_asgi(app), loop=self.loop, name="request")
        self.tasks.add(cycle.task)

    def on_body(self, body: bytes) -> None:
        self._in_frame = 0
        if self._plain is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        if self._upgrade is not None:
            return
        if self._plain is None:
            super().on_message_complete()
        else:
            self._begin_plain(self._plain, self._end_plain())
        self._in_body = False
        self._arrived = 0
        self._end_deadline()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._watch_taking()
        if not self._takes_more():
            return
        if self.pipeline:
            self._before = None
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._begin_idle()
            if self.timeout_keep_alive_task is None:
                self._close_when_idle(self.timeout_keep_alive)
        if self._unparsed:
            self.loop.call_soon(self._parse_rest)
        else:
            self.flow.resume_reading()
        # The idle timer covers the wait for the next head, until its first byte.
        if self._in_body:
            self._await_more()

    def _begin_idle(self) -> None:
        self._idle_since = now = self.loop.time()
        if self._due is None:
            self._waiting.begin(self, now)

    def _unset_keepalive_if_required(self) -> None:
        """Leave the timer running: its handler checks for activity, so that a request needs no
        timer of its own.
        """
        if self._idle_since is not None:
            self._idle_since = None
            if self._due is None:
                self._waiting.end(self, self._address)

    def _close_when_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for long enough; otherwise set the timer for the
        rest.
        """
        self.timeout_keep_alive_task = None
        if self._idle_since is None or self.transport.is_closing():
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._close_when_idle(left)
        else:
            self._close()

    def _close(self) -> None:
        """Close the connection once the client has taken its answers."""
        self.transport.close()
        self._watch_taking()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._end_watch()

    def _watch_taking(self, left_before: float = math.inf) -> None:
        """Disconnect a client that reads nothing of its answers for `body_seconds`: it would occupy
        a connection for ever.
        """
        self._end_watch()
        left = self.transport.get_write_buffer_size()
        if left < left_before:
            self._taking_due = self.loop.call_later(self._body_seconds, self._watch_taking, left)
        else:
            get_logger().warning("connection_given_up", limit="body_seconds", peer=self._address)
            self.transport.abort()

    def _end_watch(self) -> None:
        if self._taking_due is not None:
            self._taking_due.cancel()
            self._taking_due = None

    def _refuse_malformed(self) -> None:
        if len(self.url) > _LONGEST_TARGET or self._head_size() > self._head_bytes:
            self._refuse_head()
        else:
            self._refuse(
                HTTPStatus.BAD_REQUEST, Violation("body", "malformed_request", "this is not HTTP")
            )

    def _head_size(self) -> int:
        """Return the size of the request line and the complete headers in bytes."""
        texts = len(b"".join(chain.from_iterable(self.headers)))
        return _AROUND_TARGET + len(self.url) + texts + _AROUND_HEADER * len(self.headers)

    def _refuse_head(self) -> None:
        message = f"a head has at most {self._head_bytes} bytes"
        if len(self.url) > _LONGEST_TARGET:
            message = f"path and query have at most {_LONGEST_TARGET} bytes"
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, Violation("headers", "too_large", message)
        )

    def _await_more(self) -> None:
        """Set a deadline for what the client is to send next: a body or a head."""
        if self._due is not None or self.pipeline:
            return
        if self._in_body:
            self._waiting.begin(self, self.loop.time())
            self._due = self.loop.call_later(self._body_seconds, self._give_up_body)
        elif self._in_head or self.cycle.response_complete:
            self._await_head()

    def _await_head(self) -> None:
        self._waiting.begin_head(self, self._address, self.loop.time())
        self._due = self.loop.call_later(self.timeout_keep_alive, self._close)

    def _end_deadline(self) -> None:
        if self._due is not None:
            self._waiting.end(self, self._address)
            self._due.cancel()
            self._due = None

    def _give_up_body(self) -> None:
        self._end_deadline()
        if self.cycle.response_started or not has_state(self.cycle.scope):  # type: ignore[arg-type]
            self._close()
        else:
            # The code that reads the body sees this, and answers.
            state_of(self.cycle.scope).late = True  # type: ignore[arg-type]
            self.cycle.message_event.set()

    def _refuse(self, status: HTTPStatus, violation: Violation) -> None:
        # There is no valid request, so the id is never the caller's.
        id_ = request_id({})
        get_logger().warning("refused", status=int(status), request_id=id_.decode())
        body = error_body([violation])
        headers = (
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (REQUEST_ID, id_),
        )
        head = b"".join(b"%b: %b\r\n" % each for each in headers)
        self.transport.write(b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) + head)
        self.transport.write(b"\r\n" + body)
        if self.cycle is None or self.cycle.response_complete:
            self.leave()
        else:
            self._close()

    def leave(self) -> None:
        """Close the connection once the client has closed its side, or after `LINGER_S`: closing
        with unread data would make the client lose the answer (RFC 9112, section 9.6).
        """
        self._end_deadline()
        self._discarded = 0
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._due = self.loop.call_later(LINGER_S, self._close)
