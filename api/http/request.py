"""A request: its head, the state it gathers, what its handler sees, and its end.

All that is done for every request, whichever way it arrives, is here; `plain.py` and `dispatch.py`
are the two ways.
"""

from __future__ import annotations

import re
from binascii import hexlify
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import getrandbits
from time import perf_counter
from typing import Any, Final

import litestar
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.types import HTTPScope, Receive, Scope
from structlog.typing import FilteringBoundLogger

from tollkeeper.api.http.errors import (
    Problem,
    as_problem,
    internal_error,
    malformed_head,
    unauthorized,
)
from tollkeeper.api.http.limits import Allowance, Limiter
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.verbs import Effect, Verb
from tollkeeper.engine.registry.state import Account, ApiKey
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.ask import Search

REQUEST_ID: Final = b"x-request-id"
_USABLE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_RANDOM_BYTES = 12
_UNREPEATABLE = (b"authorization", b"host")


@dataclass(frozen=True, slots=True)
class Service:
    """What the requests of one listener share: the engine, the index, the jobs, the metrics, the
    rate limits, and the OpenID providers.
    """

    engine: Engine
    search: Search
    jobs: Jobs
    figures: Figures
    settings: Settings
    limiter: Limiter
    openid: OpenId


@dataclass(slots=True)
class Head:
    """A request's head; equal requests of one connection may share one.

    `path` is as sent, `route` as documented. `names` are those of all headers in lower case,
    `headers` the first of each. `key_hash` is set once the key has been checked.
    """

    method: str
    path: str
    query: bytes
    version: str
    route: str
    names: tuple[bytes, ...]
    headers: Mapping[bytes, bytes]
    key_hash: bytes | None = None


@dataclass(slots=True)
class RequestState:
    """What is known of one request so far.

    `answer_headers` are added to the answer's, the request id first. `log` is added to the log
    line; it holds no personal data and no key. `handler` is the operation that the key was checked
    for; it, `key` and `allowance` are None before authentication, and if no key is needed. `late`
    is true if the body took too long.
    """

    service: Service
    head: Head
    answer_headers: list[tuple[bytes, bytes]]
    log: dict[str, Any]
    handler: BaseRouteHandler | None = None
    key: ApiKey | None = None
    allowance: Allowance | None = None
    late: bool = False

    @property
    def request_id(self) -> bytes:
        """The request's id in its answer and its log line."""
        return self.answer_headers[0][1]


def state_of(scope: Scope) -> RequestState:
    """Return the state that `dispatch.py` gave the request."""
    state: RequestState = scope["state"][_STATE]
    return state


def has_state(scope: Scope) -> bool:
    """Whether `dispatch.py` has given the request a state; it doesn't for forwarded requests."""
    return _STATE in scope.get("state", {})


def set_state(scope: Scope, state: RequestState) -> None:
    """Give the request its state."""
    scope.setdefault("state", {})[_STATE] = state


_STATE = "request"


class Exchange:
    """What a handler needs of a request, however it arrived; `whole` is its body if that came with
    it.
    """

    __slots__ = ()

    scope: HTTPScope
    receive: Receive
    whole: bytes | None = None

    @property
    def known(self) -> RequestState:
        """What is known of the request so far."""
        return state_of(self.scope)

    @property
    def service(self) -> Service:
        """What it shares with the other requests of its listener."""
        return self.known.service

    @property
    def engine(self) -> Engine:
        """The running engine."""
        return self.known.service.engine

    @property
    def search(self) -> Search:
        """Finds payments."""
        return self.service.search

    @property
    def jobs(self) -> Jobs:
        """Runs long or risky work in other processes."""
        return self.service.jobs

    @property
    def key(self) -> ApiKey:
        """The request's key, which has the scope that the operation requires."""
        key = self.known.key
        assert key is not None
        return key

    @property
    def account(self) -> Account:
        """The key's account, as it is now."""
        return self.engine.state.accounts[self.key.account]

    async def perform(self, verb: Verb) -> Effect:
        """Perform a verb in the name of the request's key.

        Raises `Refused`, `JournalError`.
        """
        return await verb.perform(self.engine, self.key.id, unwatched)

    @property
    def route(self) -> str:
        """The request's path as documented."""
        return self.known.head.route

    @property
    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers to add to the answer."""
        return self.known.answer_headers

    @property
    def log(self) -> dict[str, Any]:
        """What to add to the log line: no personal data and no key."""
        return self.known.log


class Request(Exchange, litestar.Request[None, None, State]):  # type: ignore[misc]
    """A request through the framework."""


class DirectRequest(Exchange):
    """A request that bypasses the framework: making the framework's own object takes longer than
    reading a payment. It has all that the payment handlers use.
    """

    __slots__ = ("known", "receive")

    known: RequestState

    def __init__(self, known: RequestState, receive: Receive) -> None:
        self.known = known
        self.receive = receive


def head_of(
    method: str,
    path: str,
    query: bytes,
    version: str,
    route: str,
    sent: Sequence[tuple[bytes, bytes]],
) -> Head:
    """Return the head with headers `sent`, whose names are in lower case; of a repeated header, the
    first counts.
    """
    names = tuple(name for name, _ in sent)
    return Head(method, path, query, version, route, names, dict(reversed(sent)))


def begin_request(service: Service, head: Head) -> RequestState:
    """Return the state of a request whose head has arrived."""
    return RequestState(service, head, [(REQUEST_ID, request_id(head.headers))], {})


def request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the caller's id if it is 1 to 128 visible ASCII characters, else a random one."""
    sent = headers.get(REQUEST_ID)
    if sent is not None and _USABLE_ID.fullmatch(sent):
        return sent
    # It only names a request and protects nothing, so it needs no secure randomness.
    return hexlify(getrandbits(8 * _RANDOM_BYTES).to_bytes(_RANDOM_BYTES))


def check_head(head: Head) -> None:
    """Raise `Problem` 400 for a head that different HTTP parsers understand differently."""
    headers = head.headers
    if b"host" not in headers and head.version == "1.1":
        raise malformed_head("host", "a request of HTTP/1.1 names its host")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and coding.strip().lower() != b"chunked":
        message = "send the body as it is or `chunked`, in no other coding"
        raise malformed_head("transfer-encoding", message)
    if len(headers) == len(head.names):
        return
    for name in _UNREPEATABLE:
        if head.names.count(name) > 1:
            raise malformed_head(name.decode(), "this header may be sent once")


def shared_headers(state: RequestState) -> list[tuple[bytes, bytes]]:
    """Return the headers that every answer of the request has."""
    if state.allowance is None:
        return state.answer_headers
    return [*state.answer_headers, *state.allowance.headers()]


def problem_of(error: Exception, state: RequestState, log: FilteringBoundLogger) -> Problem:
    """Return the answer to a request that failed with `error`; internal errors are logged."""
    problem = as_problem(error)
    if problem is None and _lost_its_account(state):
        problem = unauthorized()
    if problem is None:
        log.exception("failed", route=state.head.route, request_id=state.request_id.decode())
        problem = internal_error()
    state.log["reason"] = problem.violations[0].type
    return problem


def _lost_its_account(state: RequestState) -> bool:
    """Whether the account was deleted during the request, which makes it fail anywhere."""
    return state.key is not None and state.key.account not in state.service.engine.state.accounts


def note_answer(
    state: RequestState, status: int, started: float, peer: str | None, log: FilteringBoundLogger
) -> None:
    """Count and log a request that was answered."""
    seconds = perf_counter() - started
    head = state.head
    state.service.figures.count(head.route, status, seconds, state.log)
    log.info(
        "request",
        method=head.method,
        route=head.route,
        status=status,
        # Whole microseconds: to round to three digits, Python writes the number and reads it again.
        ms=round(seconds * 1_000_000) / 1000,
        request_id=state.request_id.decode(),
        peer=peer,
        **state.log,
    )
