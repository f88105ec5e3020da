"""A request as its handler sees it, and the state it gathers on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import litestar
from litestar.datastructures import State
from litestar.types import HTTPScope, Receive, Scope

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
    line; it holds no personal data and no key. `key` and `allowance` are None before
    authentication, and if no key is needed. `late` is true if the body took too long.
    """

    service: Service
    head: Head
    answer_headers: list[tuple[bytes, bytes]]
    log: dict[str, Any]
    key: ApiKey | None = None
    allowance: Allowance | None = None
    late: bool = False

    @property
    def request_id(self) -> bytes:
        """The request's id in its answer and its log line."""
        return self.answer_headers[0][1]


def state_of(scope: Scope) -> RequestState:
    """Return the state that `observed.py` gave the request."""
    state: RequestState = scope["state"][_STATE]
    return state


def has_state(scope: Scope) -> bool:
    """Whether `observed.py` has given the request a state; it doesn't for forwarded requests."""
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
        """The request's state."""
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


class StraightRequest(Exchange):
    """A request that bypasses the framework, with everything that the payment handlers use: to make
    the framework's own object takes longer than to read a payment.
    """

    __slots__ = ("known", "receive")

    known: RequestState

    def __init__(self, known: RequestState, receive: Receive) -> None:
        self.known = known
        self.receive = receive
