"""A node's requests for one shard: answered here, or forwarded to the node that owns the journal.

One of the nodes owns a shard's journal, decides and answers. Each of the others follows the journal
(`serve_shard.py`), forwards its requests to the owner, and takes over if the owner ends or is silent
for too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from tollkeeper.api.http.authentication import AUTHORIZATION, authorization_in, is_known
from tollkeeper.api.http.connection import RESERVED
from tollkeeper.api.http.errors import Problem, answer, unavailable
from tollkeeper.api.http.forward import (
    NOT_OWNER,
    Forwarded,
    Forwarder,
    Hold,
    of_its_client,
    outgoing,
    payment_may_repeat,
)
from tollkeeper.api.http.joining import KEPT_FILES, give_kept
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import AnswerStepped, PlainRequest, sending
from tollkeeper.api.http.prove_ownership import prove_ownership
from tollkeeper.api.http.taken_payments import TakenPayment
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.runtime import Engine

_PAUSE_S = 0.05
"""How long a request waits before it is forwarded again."""
_PATIENCE_S = 10.0
"""How long a request waits for a node to own the journal."""


class ShardRequests:
    """Answers or forwards requests: while `decides` is true, this node owns the journal and answers."""

    def __init__(self, forwarder: Forwarder, figures: Figures) -> None:
        self.decides = False
        self._figures = figures
        self._forwarder = forwarder
        self.engine: Engine | None = None
        self.app: ASGIApp | None = None
        self._answer_plain: AnswerStepped | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._owner = ""
        self._owner_address = ""
        self._held = Hold()
        # Held apart, so that nobody without a key takes the place of payments.
        self._held_of_strangers = Hold()

    def serve(self, engine: Engine, app: ASGIApp, answer_plain: AnswerStepped) -> None:
        """Use this engine, its application, and what answers plain requests from now on."""
        if self.engine is not None:
            # Keep the former engine's address of the owner until this one learns a newer one.
            engine.forwards_to = self.engine.forwards_to
        self.engine, self.app = engine, prove_ownership(app, engine)
        self._answer_plain = answer_plain

    async def public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for clients."""
        assert self.app is not None
        if scope["type"] != ScopeType.HTTP or scope["path"].encode() in RESERVED:
            await self.app(scope, receive, send)
        elif self.decides:
            await self._counted(self.app(scope, receive, send))
        else:
            await self._pass_on(scope, receive, send)

    async def from_nodes(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application for other nodes: requests that they forwarded are never forwarded again."""
        assert self.app is not None
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
        elif self.decides and scope["path"].startswith(KEPT_FILES):
            await self._give_kept(scope, send)
        elif self.decides:
            await self._counted(self.app(of_its_client(scope), receive, send))
        else:
            await answer(send, _not_owner())

    async def plain(self, request: PlainRequest) -> None:
        """Answer a plain request of a client."""
        assert self._answer_plain is not None
        if not self.decides and await self._pass_plain_on(request):
            return
        await self._counted(self._answer_plain(request))

    async def taken(self, payment: TakenPayment) -> None:
        """Answer a payment that another node sent."""
        assert self._answer_plain is not None
        if self.decides:
            await self._counted(self._answer_plain(payment))
        else:
            payment.refuse()

    def learn(self, owner: str, address: str | None) -> None:
        """Record who owns the journal, and that node's address; None if it is this node or nobody."""
        assert self.engine is not None
        if owner != self._owner:
            self._forwarder.leave(self._owner_address)
            self._owner = owner
        self._owner_address = address or self._owner_address
        self.engine.forwards_to = address

    def lose_sight(self) -> None:
        """Record that the owner's address is not known for now."""
        assert self.engine is not None
        self.engine.forwards_to = None

    async def cease(self, seconds: float) -> None:
        """Stop answering; returns once all requests are answered, or after `seconds`."""
        self.decides = False
        self._idle.clear()
        if self._in_flight:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()

    async def _counted(self, answering: Awaitable[None]) -> None:
        self._in_flight += 1
        try:
            await answering
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _give_kept(self, scope: HTTPScope, send: Send) -> None:
        assert self.engine is not None
        try:
            await give_kept(self.engine, scope, send)
        except Problem as problem:
            await answer(send, problem)

    async def _pass_on(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            async with self._hold_for(authorization_in(scope)).body(receive) as body:
                if body is None:
                    return
                request = outgoing(scope, body)
                forward = partial(self._forwarder.forward, request=request, send=send)
                if not await self._forward(forward, request.may_repeat, is_whole=body.is_whole):
                    assert self.app is not None
                    await self._counted(self.app(scope, body.receive, send))
        except Problem as problem:
            await answer(send, problem)

    async def _pass_plain_on(self, request: PlainRequest) -> bool:
        size = len(request.whole)
        hold = self._hold_for(request.plain.head.headers.get(AUTHORIZATION))
        try:
            hold.add(size)
            try:
                forward = partial(self._forwarder.forward_payment, request=request)
                return await self._forward(forward, partial(payment_may_repeat, request))
            finally:
                hold.size -= size
        except Problem as problem:
            await answer(sending(request), problem)
            return True

    def _hold_for(self, authorization: bytes | None) -> Hold:
        assert self.engine is not None
        if is_known(self.engine.state, authorization, self.engine.clock()):
            return self._held
        return self._held_of_strangers

    async def _forward(
        self,
        forward: Callable[[str], Awaitable[Forwarded]],
        may_repeat: Callable[[], bool],
        *,
        is_whole: bool = True,
    ) -> bool:
        """Have the owner answer; return False if this node has become the owner. Raises `Problem`."""
        deadline = monotonic() + _PATIENCE_S
        while not self.decides:
            assert self.engine is not None
            address = self.engine.forwards_to
            outcome = Forwarded.NOT_DONE
            if address is not None:
                outcome = await forward(address)
            if outcome is Forwarded.ANSWERED:
                self._figures.forwarded += 1
                return True
            if outcome is Forwarded.UNKNOWN and not may_repeat():
                raise _unknown_outcome()
            if monotonic() > deadline or not (address is None or is_whole):
                raise unavailable("no node owns the journal at the moment")
            await asyncio.sleep(_PAUSE_S)
        return False


def _not_owner() -> Problem:
    problem = unavailable("this node does not own the journal")
    return Problem(problem.status, problem.violations, [*problem.headers, (NOT_OWNER, b"1")])


def _unknown_outcome() -> Problem:
    message = "the node that owned the journal ended before it answered: this may have been done"
    return Problem(502, [Violation("body", "unavailable", message)], [])
