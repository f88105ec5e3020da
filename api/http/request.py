"""A request as its handler sees it, and what is known of it on its way."""

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
from tollkeeper.engine.search.asking import Search


@dataclass(frozen=True, slots=True)
class Service:
    """What the requests of one listener share: the engine, the index of payments, what runs long
    or risky work, the counters, what each key may still ask for, who lets people in by OpenID.
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
    """A request's head, or what many of one connection have for one.

    `path` is as it was sent, `route` as it is described. `names` are those of all headers, in lower
    case, `headers` the first of each. `key_hash` is known once the key was looked at.
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
    """What is known of one request on its way.

    `answer_headers` join those of the answer, the first of them the request's id. `log` joins the
    request's log line and holds no personal data and no key.
    `key` and `allowance` are None until authentication, and where no key is needed. `late` says
    that the body's time is over.
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
        """What the request is named in its answer and its log line."""
        return self.answer_headers[0][1]


def state_of(scope: Scope) -> RequestState:
    """The state that the outermost application gave the request."""
    state: RequestState = scope["state"][_STATE]
    return state


def has_state(scope: Scope) -> bool:
    """Whether the outermost application has the request: what is sent on to another node it never
    gets."""
    return _STATE in scope.get("state", {})


def set_state(scope: Scope, state: RequestState) -> None:
    """Give the request its state."""
    scope.setdefault("state", {})[_STATE] = state


_STATE = "request"


class Exchange:
    """What a handler needs of a request, whichever way it came to it; `whole` is its body where that
    came with it."""

    __slots__ = ()

    scope: HTTPScope
    receive: Receive
    whole: bytes | None = None

    @property
    def known(self) -> RequestState:
        """What is known of it on its way."""
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
        """What finds payments."""
        return self.service.search

    @property
    def jobs(self) -> Jobs:
        """What runs long or risky work beside the service."""
        return self.service.jobs

    @property
    def key(self) -> ApiKey:
        """The key of the request, which has the scope that its operation needs."""
        key = self.known.key
        assert key is not None
        return key

    @property
    def account(self) -> Account:
        """The account of the key, as it is now."""
        return self.engine.state.accounts[self.key.account]

    async def perform(self, verb: Verb) -> Effect:
        """Does in the name of the request's key what a command would do in its author's.

        Raises `Refused`, `JournalError`.
        """
        return await verb.perform(self.engine, self.key.id, unwatched)

    @property
    def route(self) -> str:
        """The request's path as it is described."""
        return self.known.head.route

    @property
    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """What joins the headers of the answer."""
        return self.known.answer_headers

    @property
    def log(self) -> dict[str, Any]:
        """What joins the request's log line: no personal data and no key."""
        return self.known.log


class Request(Exchange, litestar.Request[None, None, State]):  # type: ignore[misc]
    """A request that the framework brings to its handler."""


class StraightRequest(Exchange):
    """A request that goes past the framework, with all of a `Request` that payments' handlers use:
    to make the framework's own takes longer than to read a payment."""

    __slots__ = ("known", "receive")

    known: RequestState

    def __init__(self, known: RequestState, receive: Receive) -> None:
        self.known = known
        self.receive = receive
