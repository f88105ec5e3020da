"""Between a journal and its database: holds requests or answers back, and cuts connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """What is sent flows while `requests` and `answers` are set; `held` is set once something waits.
    While `is_away`, nobody is let in.

    After requests with the texts `unanswered`, one after the other, the last gets no answer.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows: set[asyncio.Task[None]] = set()
        self.requests, self.answers, self.held = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.requests.set()
        self.answers.set()
        self.unanswered: list[bytes] = []
        self.is_away = False

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_away:
            writer.transport.abort()
            return
        from_server, to_server = await asyncio.open_connection(*self._server)
        self._writers |= {writer, to_server}
        for flow in (
            self._flow(reader, to_server, self.requests),
            self._flow(from_server, writer, self.answers),
        ):
            task = asyncio.create_task(flow)
            self._flows.add(task)
            task.add_done_callback(self._flows.discard)

    async def _flow(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if gate is self.requests and self.unanswered and self.unanswered[0] in data:
                    self.unanswered.pop(0)
                    if not self.unanswered:
                        self.answers.clear()
                if not gate.is_set():
                    self.held.set()
                    await gate.wait()
                writer.write(data)
                await writer.drain()
            writer.close()

    def cut(self) -> None:
        """Ends all connections; what is held back is never delivered."""
        for flow in list(self._flows):
            flow.cancel()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self.requests.set()
        self.answers.set()
        self.held.clear()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the database, and the address through it."""
    parts = urlsplit(url)
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    name = parts.username or "postgres"
    try:
        yield proxy, urlunsplit(parts._replace(netloc=f"{name}@127.0.0.1:{port}"))
    finally:
        proxy.cut()
        server.close()
