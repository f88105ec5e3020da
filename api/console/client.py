"""A client of the public interface within the process: pages get all data from `/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
from litestar.types import ASGIApp, Message, Scope

from tollkeeper.api.console.turns import Turns

_ENCODER = msgspec.json.Encoder(decimal_format="number")
_DECODER = msgspec.json.Decoder(float_hook=Decimal)

Query: TypeAlias = Mapping[str, str | Sequence[str] | None]
JsonObject: TypeAlias = Mapping[str, Any]


class RefusalError(Exception):
    """The interface answered with a status of 400 or more; `errors` are its errors."""

    def __init__(self, status: int, errors: Sequence[JsonObject]) -> None:
        self.status = status
        self.errors = errors
        super().__init__("; ".join(str(error["message"]) for error in errors))


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One request made by a page."""

    method: str
    target: str
    body: bytes
    media_type: str


@dataclass(slots=True)
class PublicClient:
    """Calls `app` with one key, and records each call so that the page can show it."""

    app: ASGIApp
    key: str
    address: tuple[str, int] | None
    turns: Turns
    calls: list[MadeCall] = field(default_factory=list)

    async def get(self, path: str, query: Query | None = None) -> Any:
        """Return the interface's answer. Raises `RefusalError`."""
        return await self.send("GET", path, query)

    def quiet(self) -> PublicClient:
        """Return a client whose calls the page doesn't show, such as calls with personal data."""
        return PublicClient(self.app, self.key, self.address, self.turns)

    async def aside(self, path: str, query: Query) -> Any:
        """`get`, without recording the call."""
        return await self.quiet().get(path, query)

    async def read_pages(self, path: str, query: Query) -> AsyncIterator[Any]:
        """Yield a listing's answers to its end; only the first call is recorded. Raises
        `RefusalError`."""
        page = await self.get(path, query)
        yield page
        while page["cursor"] is not None:
            page = await self.aside(path, {**query, "cursor": page["cursor"]})
            yield page

    async def send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        text: str | None = None,
    ) -> Any:
        """Send JSON, or `text`, and return the answer; None if it is empty. Raises `RefusalError`."""
        sent = text.encode() if text is not None else b"" if body is None else _ENCODER.encode(body)
        media_type = "text/plain" if text is not None else "application/json"
        headers = [(b"content-type", media_type.encode())] if sent else []
        scope = self._scope(method, path, query, headers)
        self.calls.append(MadeCall(method, _target(scope), sent, media_type))
        status = 0
        chunks: list[bytes] = []

        async def keep(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                chunks.append(message.get("body", b""))

        # The answer is often there within one turn of the event loop: read it in another one.
        await self.turns.wait()
        await self.app(scope, _receive_once(sent), keep)
        await self.turns.wait()
        received = b"".join(chunks)
        answer = _DECODER.decode(received) if received else None
        if status >= 400:
            raise RefusalError(status, answer["errors"] if answer else [])
        return answer

    async def follow(
        self, path: str, query: Query | None = None, last_id: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield an answer's stream as it arrives. Raises `RefusalError`."""
        headers = [] if last_id is None else [(b"last-event-id", last_id.encode("latin-1"))]
        scope = self._scope("GET", path, query, headers)
        chunks: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        status = 0

        async def pass_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                if message.get("body"):
                    await chunks.put(message["body"])
                if not message.get("more_body", False):
                    await chunks.put(None)

        async def run() -> None:
            await self.app(scope, _receive_once(b""), pass_on)

        streaming = asyncio.create_task(run())
        try:
            while (chunk := await chunks.get()) is not None:
                if status >= 400:
                    raise RefusalError(status, msgspec.json.decode(chunk)["errors"])
                yield chunk
        finally:
            streaming.cancel()
            await asyncio.wait([streaming])

    def _scope(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: list[tuple[bytes, bytes]],
    ) -> Scope:
        chosen = {name: value for name, value in (query or {}).items() if value}
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(chosen, doseq=True).encode(),
            "headers": [
                (b"host", b"console"),
                (b"authorization", b"Bearer " + self.key.encode("latin-1", "replace")),
                *headers,
            ],
            "client": self.address,
            "server": None,
            "state": {},
            "extensions": {},
        }
        return scope  # type: ignore[return-value]


def segment(name: str) -> str:
    """Percent-encode a name as one path segment."""
    return quote(name, safe="")


def _target(scope: Scope) -> str:
    query = scope["query_string"].decode()
    return scope["path"] + (f"?{query}" if query else "")


def _receive_once(body: bytes) -> Any:
    """Return a `receive` that gives the body once, and never a disconnect."""
    sent = False

    async def receive() -> JsonObject:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive
