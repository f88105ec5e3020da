"""A node's shards: each request goes to the shard of its account.

A key, a session token and a link's code all contain their shard's number, so a new key works
everywhere at once. Only the start of an OpenID sign-in names the account itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from tollkeeper.api.http.authentication import AUTHORIZATION, authorization_in, secret_in
from tollkeeper.api.http.connection import RESERVED
from tollkeeper.api.http.errors import Problem, answer
from tollkeeper.api.http.forward import Hold
from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.plain import PlainRequest
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.api.http.taken_payments import AnswerTaken
from tollkeeper.engine.registry.keys import shard_named

_BY_BODY = frozenset((b"/v1/sessions", b"/v1/sign-ins"))


class _Session(Struct, frozen=True):
    key: str | None = None
    code: str | None = None
    attempt: str | None = None


class _SignIn(Struct, frozen=True):
    account: str = ""


class _Body(Struct, frozen=True):
    session: _Session = _Session()
    sign_in: _SignIn = _SignIn()


_decode = msgspec.json.Decoder(_Body).decode


class Shards:
    """All shards of a node, numbered from 1."""

    def __init__(self, shards: Sequence[ShardRequests]) -> None:
        self._first = shards[0]
        self._numbered = dict(enumerate(shards, start=1))
        self._named = {str(number).encode(): shard for number, shard in self._numbered.items()}
        self._held = Hold()

    async def public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for clients."""
        if scope["type"] != ScopeType.HTTP or scope["path"].encode() in RESERVED:
            await self._first.public(scope, receive, send)
        elif scope["method"] == "POST" and scope["raw_path"] in _BY_BODY:
            await self._by_body(scope, receive, send)
        else:
            await self._of_key(authorization_in(scope)).public(scope, receive, send)

    async def from_nodes(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for other nodes."""
        number = b""
        if scope["type"] == ScopeType.HTTP:
            number = next((value for name, value in scope["headers"] if name == SHARD), number)
        await self._named_by(number).from_nodes(scope, receive, send)

    def plain(self, request: PlainRequest) -> Coroutine[Any, Any, None]:
        """Answer a plain request of a client."""
        authorization = request.plain.head.headers.get(AUTHORIZATION)
        return self._of_key(authorization).plain(request)

    def taking(self, shard: bytes) -> AnswerTaken:
        """Return what answers payments of the named shard that other nodes send."""
        return self._named_by(shard).taken

    async def _by_body(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            async with self._held.body(receive) as body:
                if body is not None:
                    shard = self._shard(self._number_in(body.held))
                    await shard.public(scope, body.receive, send)
        except Problem as problem:
            await answer(send, problem)

    def _number_in(self, body: bytes) -> int:
        """Return the number of the shard that a body names. A body that can't be read goes to the first shard,
        which refuses it.
        """
        try:
            sent = _decode(body)
        except msgspec.MsgspecError:
            return 1
        session = sent.session
        if secret := session.attempt or session.code or session.key:
            return shard_named(secret)
        return self._home(sent.sign_in.account)

    def _home(self, account: str) -> int:
        """Return the number of an account's shard; the first for an unknown account."""
        for number, shard in self._numbered.items():
            if shard.engine is not None and account in shard.engine.state.numbers:
                return number
        return 1

    def _of_key(self, authorization: bytes | None) -> ShardRequests:
        return self._shard(shard_named(secret_in(authorization) or ""))

    def _named_by(self, number: bytes) -> ShardRequests:
        return self._named.get(number, self._first)

    def _shard(self, number: int) -> ShardRequests:
        """Return the shard with this number; if there is none, the first, which refuses the request."""
        return self._numbered.get(number, self._first)
