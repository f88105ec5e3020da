"""A request as its handler sees it: the engine it asks, the key that asks, what to log of it."""

from __future__ import annotations

from typing import Any

import litestar
from litestar.datastructures import State
from litestar.types import HTTPScope, Receive

from tollkeeper.engine.registry.state import Account, ApiKey
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.asking import Search


class Exchange:
    """What a handler needs of a request, whichever way it came to it."""

    __slots__ = ()

    scope: HTTPScope

    @property
    def engine(self) -> Engine:
        """The running engine."""
        engine: Engine = self.scope["state"]["engine"]
        return engine

    @property
    def search(self) -> Search:
        """What finds payments."""
        search: Search = self.scope["state"]["search"]
        return search

    @property
    def key(self) -> ApiKey:
        """The key of the request, which has the scope that its operation needs."""
        key: ApiKey = self.scope["state"]["key"]
        return key

    @property
    def account(self) -> Account:
        """The account of the key, as it is now."""
        return self.engine.state.accounts[self.key.account]

    @property
    def route(self) -> str:
        """The request's path as it is described."""
        route: str = self.scope["state"]["route"]
        return route

    @property
    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """What joins the headers of the answer."""
        headers: list[tuple[bytes, bytes]] = self.scope["state"]["answer_headers"]
        return headers

    @property
    def log(self) -> dict[str, Any]:
        """What joins the request's log line: no personal data and no key."""
        fields: dict[str, Any] = self.scope["state"]["log"]
        return fields


class Request(Exchange, litestar.Request[None, None, State]):  # type: ignore[misc]
    """A request that the framework brings to its handler."""


class StraightRequest(Exchange):
    """A request that goes past the framework, with all of a `Request` that payments' handlers use:
    to make the framework's own takes longer than to read a payment."""

    __slots__ = ("receive", "scope")

    def __init__(self, scope: HTTPScope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
