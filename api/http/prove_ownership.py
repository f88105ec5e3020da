"""Answers from memory are checked: another process may have taken over the journal.

A payment's append proves that the journal is still this node's. Any other answer (a metric, whether
a key is valid, that a payment doesn't exist) is true only if the journal was still ours after it
was computed.
"""

from __future__ import annotations

from time import monotonic

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tollkeeper.api.http.connection import RESERVED
from tollkeeper.api.http.errors import answer, not_kept
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.runtime import Engine


def prove_ownership(app: ASGIApp, engine: Engine) -> ASGIApp:
    """Wrap the application: it answers 503 instead of what it can't prove."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["path"].encode() in RESERVED:
            await app(scope, receive, send)
            return
        begun = monotonic()
        is_withheld = False

        async def prove(message: Message) -> None:
            nonlocal is_withheld
            if message["type"] == "http.response.start" and not is_withheld:
                try:
                    await engine.journal.prove(begun)
                except JournalError as error:
                    is_withheld = True
                    await answer(send, not_kept(error))
            if not is_withheld:
                await send(message)

        await app(scope, receive, prove)

    return handle
