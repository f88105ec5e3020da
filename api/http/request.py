"""A request as its handler sees it: the engine it asks, the key that asks, what to log of it."""

from __future__ import annotations

from typing import Any

import litestar
from litestar.datastructures import State

from tollkeeper.engine.registry.state import Account, Key
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.asking import Search


class Request(litestar.Request[None, None, State]):
    """A request at a running service."""

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
    def key(self) -> Key:
        """The key of the request, which has the scope that its operation needs."""
        key: Key = self.scope["state"]["key"]
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
