"""A request on the ordinary way (ASGI) and its answer, sent in as few writes as possible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tollkeeper.api.http.plain import CLOSE, whole_answer


class Awaited:
    """A lighter `asyncio.Event` with at most one waiter, for uvicorn: most requests never wait on
    it.
    """

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        if not self._is_set:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting


class Cycle(RequestResponseCycle):
    """One request and its answer; head and body are sent in one write if the length is known.

    `task` runs it, and is in `tasks` until it ends. `leave` closes the connection of a client that
    may still be sending.
    """

    tasks: set[asyncio.Task[None]]
    task: asyncio.Task[None]
    leave: Callable[[], None]
    _head: Any = None

    async def run_asgi(self, app: Any) -> None:
        try:
            await super().run_asgi(app)
        finally:
            self.tasks.discard(self.task)

    async def send(self, message: Any) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                await self._send_whole(head, message.get("body", b""))
                return
            self.response_started = False
            await super().send(head)
        elif (
            not self.response_started
            and self.scope["method"] != "HEAD"
            and _content_length(message)
        ):
            self._head, self.response_started = message, True
            return
        await super().send(message)

    async def _send_whole(self, head: Any, body: bytes) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if int(_content_length(head)) != len(body):
            raise RuntimeError("the answer's length is not what its head says")
        headers = [*self.default_headers, *head["headers"]]
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        self.transport.write(whole_answer(head["status"], headers, body))
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            if self.more_body:
                self.leave()
            else:
                self.transport.close()
        self.on_response()


def _content_length(start: Any) -> bytes:
    """Return the content length from an answer's start message; empty without one."""
    for name, value in start["headers"]:
        if name == b"content-length":
            length: bytes = value
            return length
    return b""
