"""Where another process may have taken the journal over, no answer rests on memory alone.

A payment's append proves whose journal it is. What else is answered (a metric, a key that is good or
not, a payment that is not there) was so only if the journal was still ours once it was worked out.
"""

from __future__ import annotations

from time import monotonic

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tollkeeper.api.http.connection import RESERVED
from tollkeeper.api.http.errors import answer, not_kept
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.runtime import Engine


def proved(app: ASGIApp, engine: Engine) -> ASGIApp:
    """The application, which answers 503 in place of what it can't prove."""

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
