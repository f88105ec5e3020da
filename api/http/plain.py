"""Plain payment requests are answered directly from the connection's bytes, without ASGI.

Nearly all of a shop's requests are plain: they create or update a payment, arrive completely with a
declared length, and come on a persistent connection with no other request pending. All others take
the ordinary way (`dispatch.py`). Both ways use the same functions and give the same answers, byte
for byte; this one needs no scope, messages or task, which together take longer than a payment
(docs/performance.md, "A whole request").
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from time import monotonic, perf_counter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from litestar.handlers import HTTPRouteHandler
from litestar.types import Message, Send
from structlog import get_logger
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from tollkeeper.api.http.authentication import await_turn, let_in
from tollkeeper.api.http.dispatch import Find, described_path
from tollkeeper.api.http.errors import JSON, Problem, error_body
from tollkeeper.api.http.logs import request_log
from tollkeeper.api.http.payments import create_payment, update_payment
from tollkeeper.api.http.request import (
    Exchange,
    Head,
    RequestState,
    Service,
    begin_request,
    check_head,
    head_of,
    note_answer,
    problem_of,
    shared_headers,
)
from tollkeeper.engine.journal.contract import JournalError

HeaderLines: TypeAlias = Sequence[tuple[bytes, bytes]]
Answering: TypeAlias = Coroutine[Any, Any, None]
AnswerStepped: TypeAlias = Callable[["SteppedRequest"], Answering]
AnswerPlain: TypeAlias = Callable[["PlainRequest"], Answering]

_CREATE: Final = b"/v1/payments"
_match_update = re.compile(rb"/v1/payments/([\w.~%-]+)").fullmatch
_LENGTH: Final = b"content-length"
_BLANK: Final = b"\r\n\r\n"
_find_length = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.IGNORECASE).search
_LARGEST_BODY: Final = 65_536
"""A larger body takes the ordinary way, where it can be refused before it has arrived."""
_LENGTH_DIGITS: Final = 5
"""The digits of that number."""
_MOST_LEARNED: Final = 1024
"""The most heads that a listener has learned: the next one makes it forget them all."""
_LONGEST_LEARNED: Final = 2048
"""The bytes of the longest head that is learned."""
_NOT_PLAIN: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
CLOSE: Final = (b"connection", b"close")


class PlainHead(NamedTuple):
    """The head of a request that may be plain: its handler, the raw id in its path, and the headers
    as `sent`, without the length.

    A client repeats its head except for the length of the body. A learned head is recognised by its
    bytes: `before` are those up to that number, `after` those behind it. Both are empty in a head
    that is not learned.
    """

    handler: HTTPRouteHandler
    ids: tuple[str, ...]
    head: Head
    sent: tuple[tuple[bytes, bytes], ...]
    before: bytes = b""
    after: bytes = b""


class PlainConnection(Protocol):
    """What a plain request needs of its connection."""

    transport: asyncio.Transport
    server_state: ServerState
    client: tuple[str, int] | None

    def on_response_complete(self) -> None:
        """Let the next request be answered."""
        ...


class PlainPayments:
    """Finds the plain requests of a listener, and has them answered by `answer`; `route_of` finds
    routes of paths. A learned head is recognised on every connection: a load balancer sends
    requests of many clients on each.
    """

    def __init__(self, route_of: Find, answer: AnswerPlain) -> None:
        self._route_of = route_of
        self._learned: dict[tuple[bytes, bytes], PlainHead] = {}
        self.answer = answer

    def find(self, method: bytes, target: bytes, sent: HeaderLines) -> PlainHead | None:
        """Return the head of a request if it may be plain, else None."""
        plain = plain_head(self._route_of, method, target, sent)
        if plain is None:
            return None
        headers = plain.head.headers
        length = headers.get(_LENGTH)
        if length is None or int(length) > _LARGEST_BODY or not _NOT_PLAIN.isdisjoint(headers):
            return None
        return plain

    def find_learned(self, request: bytes) -> tuple[PlainHead, bytes] | None:
        """Return the head and the body of a whole request if its head was learned, else None."""
        body = request.find(_BLANK) + len(_BLANK)
        length = _find_length(request, 0, body)
        if length is None:
            return None
        begin, end = length.span(1)
        plain = self._learned.get((request[:begin], request[end:body]))
        if plain is None or end - begin > _LENGTH_DIGITS or int(length[1]) != len(request) - body:
            return None
        return plain, request[body:]

    def learn(self, plain: PlainHead, request: bytes) -> None:
        """Learn the head of a whole request, if it can be recognised."""
        learned = recognisable(plain, request)
        if learned is None or len(learned.before) + len(learned.after) > _LONGEST_LEARNED:
            return
        if len(self._learned) == _MOST_LEARNED:
            self._learned.clear()
        self._learned[learned.before, learned.after] = learned


def plain_head(find: Find, method: bytes, target: bytes, sent: HeaderLines) -> PlainHead | None:
    """Return the head of a request to create or update a payment, None for any other; `find` finds
    the route of a path.
    """
    ids: tuple[str, ...] = ()
    if method == b"POST" and target == _CREATE:
        handler = create_payment
    elif method == b"PATCH" and (matched := _match_update(target)):
        handler, ids = update_payment, (matched[1].decode("ascii"),)
    else:
        return None
    path, (described,) = target.decode("ascii"), map(described_path, handler.paths)
    route = find(path)
    if route is None or route.path != described:
        return None
    head = head_of(method.decode("ascii"), path, b"", "1.1", described, sent)
    try:
        check_head(head)
    except Problem:
        return None
    return PlainHead(handler, ids, head, tuple(each for each in sent if each[0] != _LENGTH))


def recognisable(plain: PlainHead, request: bytes) -> PlainHead | None:
    """Return the head so that it can be recognised in the bytes of later requests. None for an
    update, whose path differs each time, and if the bytes don't show one length and all headers.
    """
    if plain.ids:
        return None
    head, blank, body = request.partition(_BLANK)
    length = _find_length(head + blank)
    has_all_headers = head.count(b"\r\n") == len(plain.head.names)
    if length is None or int(length[1]) != len(body) or not has_all_headers:
        return None
    # The length differs per request.
    headers = {name: value for name, value in plain.head.headers.items() if name != _LENGTH}
    return plain._replace(
        head=replace(plain.head, headers=headers),
        before=length.string[: length.start(1)],
        after=length.string[length.end(1) :],
    )


def answering(service: Service) -> AnswerStepped:
    """Return what answers plain requests by one service."""
    log, prove = request_log(), service.engine.journal.prove

    async def answer(request: SteppedRequest) -> None:
        started, begun = perf_counter(), monotonic()
        handler, ids, head, *_ = request.plain
        known = request.known = begin_request(service, head)
        headers: HeaderLines = ()
        try:
            if wait := let_in(known, handler):
                await await_turn(known, wait)
            status, body = handler.status_code, await handler.fn(request, *ids)
        except Exception as error:
            status, headers, body = _answer_of(problem_of(error, known, log))
        try:
            # Other nodes may own the journal by now, see `prove_ownership.py`.
            await prove(begun)
        except JournalError as error:
            status, headers, body = _answer_of(problem_of(error, known, log))
        of_body = ((b"content-type", JSON), (_LENGTH, b"%d" % len(body)))
        request.send(status, [*of_body, *headers, *shared_headers(known)], body)
        note_answer(known, int(status), started, request.peer, log)

    return answer


def _answer_of(problem: Problem) -> tuple[int, HeaderLines, bytes]:
    return problem.status, problem.headers, error_body(problem.violations)


class SteppedRequest(Exchange):
    """A complete request, and its answer: `whole` is the body, `peer` the client's address.

    The server has it in place of a task. It runs until it has to wait, usually for the journal, and
    continues in that future's callback.
    """

    __slots__ = ("_server_state", "_steps", "_waits_for", "known", "peer", "plain", "whole")

    known: RequestState
    whole: bytes

    def __init__(
        self, plain: PlainHead, body: bytes, peer: str | None, server_state: ServerState
    ) -> None:
        self.plain = plain
        self.whole = body
        self.peer = peer
        self._server_state = server_state
        self._waits_for: asyncio.Future[Any] | None = None

    @abstractmethod
    def send(self, status: int, headers: HeaderLines, body: bytes) -> None:
        """Send the answer."""

    @abstractmethod
    def break_off(self) -> None:
        """Close the connection, as no answer will follow."""

    def run(self, steps: Answering) -> None:
        """Answer the request by these steps."""
        self._steps = steps
        self._server_state.tasks.add(self)  # type: ignore[arg-type]
        self._step()

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - a task's signature
        """Cancel what the request waits for, as a task would."""
        return self._waits_for is not None and self._waits_for.cancel()

    def _step(self, _done: object = None) -> None:
        try:
            waits_for = self._steps.send(None)
        except StopIteration:
            pass
        except BaseException as error:
            get_logger().error("failed", exc_info=error)
            self.break_off()
        else:
            self._await(waits_for)
            return
        self._server_state.tasks.discard(self)

    def _await(self, waits_for: asyncio.Future[Any] | None) -> None:
        """Continue when the awaited future is done; None means one turn of the loop
        (`asyncio.sleep(0)`).
        """
        if waits_for is None:
            waits_for = asyncio.get_running_loop().create_future()
            waits_for.set_result(None)
        # As a task does, so that another request may await the same future.
        waits_for._asyncio_future_blocking = False  # noqa: SLF001 - how asyncio knows a future
        self._waits_for = waits_for
        waits_for.add_done_callback(self._step)


class PlainRequest(SteppedRequest):
    """A request on a client's connection, which uses it in place of uvicorn's request cycle."""

    __slots__ = ("_connection", "_payments", "disconnected", "keep_alive", "response_complete")

    more_body = False

    def __init__(
        self,
        payments: PlainPayments,
        plain: PlainHead,
        body: bytes,
        connection: PlainConnection,
    ) -> None:
        peer = connection.client[0] if connection.client else None
        super().__init__(plain, body, peer, connection.server_state)
        self.keep_alive = True
        self.disconnected = self.response_complete = False
        self._payments = payments
        self._connection = connection

    @property
    def message_event(self) -> PlainRequest:
        """The event that uvicorn sets when the client disconnects; nobody waits for it here."""
        return self

    def set(self) -> None:
        """Ignored; see `message_event`."""

    def start(self) -> None:
        """Answer the request."""
        self.run(self._payments.answer(self))

    def send(self, status: int, headers: HeaderLines, body: bytes) -> None:
        lines = [*self._connection.server_state.default_headers, *headers]
        if CLOSE in lines:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(CLOSE)
        self._write(whole_answer(status, lines, body))

    def send_on(self, status: int, rest: bytes) -> None:
        """Send an answer of which another node made the `rest`, behind its first line."""
        if not self.keep_alive:
            rest = rest.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
        own = (b"%b: %b\r\n" % each for each in self._connection.server_state.default_headers)
        self._write(b"".join((STATUS_LINE[status], *own, rest)))

    def _write(self, answer: bytes) -> None:
        if self.disconnected:
            return
        transport = self._connection.transport
        transport.write(answer)
        self.response_complete = True
        # Released, so that an idle connection holds no body.
        self.whole = b""
        if not self.keep_alive:
            transport.close()
        self._connection.on_response_complete()

    def break_off(self) -> None:
        self._connection.transport.close()


def sending(request: PlainRequest) -> Send:
    """Return what takes an ASGI application's answer, and sends it once it is complete."""
    status, headers, parts = 0, list[tuple[bytes, bytes]](), list[bytes]()

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], [*message["headers"]]
        elif message["type"] == "http.response.body":
            parts.append(message["body"])
            if not message["more_body"]:
                body = b"".join(parts)
                if all(name != _LENGTH for name, _ in headers):
                    headers.append((_LENGTH, b"%d" % len(body)))
                request.send(status, headers, body)

    return send


def whole_answer(status: int, headers: HeaderLines, body: bytes) -> bytes:
    """Return an answer's bytes. Raises as `lines_and_body`."""
    return STATUS_LINE[status] + lines_and_body(headers, body)


def lines_and_body(headers: HeaderLines, body: bytes) -> bytes:
    """Return an answer's bytes behind its first line. Raises `RuntimeError` for a header with a
    line break.
    """
    lines = b"\r\n".join(map(b": ".join, headers))
    # `count`, since `in` first tries its argument as a number, which takes longer than everything
    # else here.
    if not lines.count(b"\n") == lines.count(b"\r") == len(headers) - 1:
        raise RuntimeError("a header has a line break")
    return b"%b\r\n\r\n%b" % (lines, body)
