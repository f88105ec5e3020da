"""A node's shards: each request goes to its account's shard.

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
from tollkeeper.api.http.node import SharingNode
from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.plain import PlainRequest
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

    def __init__(self, nodes: Sequence[SharingNode]) -> None:
        self._nodes = nodes
        self._numbered = dict(enumerate(nodes, start=1))
        self._named = {str(number).encode(): node for number, node in self._numbered.items()}
        self._held = Hold()

    async def public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for clients."""
        if scope["type"] != ScopeType.HTTP or scope["path"].encode() in RESERVED:
            await self._nodes[0].public(scope, receive, send)
        elif scope["method"] == "POST" and scope["raw_path"] in _BY_BODY:
            await self._by_body(scope, receive, send)
        else:
            await self._of_key(authorization_in(scope)).public(scope, receive, send)

    async def from_nodes(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for other nodes."""
        shard = b""
        if scope["type"] == ScopeType.HTTP:
            shard = next((value for name, value in scope["headers"] if name == SHARD), shard)
        await self._named_by(shard).from_nodes(scope, receive, send)

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
                    node = self._node(self._shard_in(body.held))
                    await node.public(scope, body.receive, send)
        except Problem as problem:
            await answer(send, problem)

    def _shard_in(self, body: bytes) -> int:
        """Return the shard that a body names. A body that can't be read goes to the first shard,
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
        for number, node in self._numbered.items():
            if node.engine is not None and account in node.engine.state.numbers:
                return number
        return 1

    def _of_key(self, authorization: bytes | None) -> SharingNode:
        return self._node(shard_named(secret_in(authorization) or ""))

    def _named_by(self, number: bytes) -> SharingNode:
        return self._named.get(number, self._nodes[0])

    def _node(self, number: int) -> SharingNode:
        """Return a shard by number. A number without one goes to the first shard, which refuses
        the request.
        """
        return self._numbered.get(number, self._nodes[0])
