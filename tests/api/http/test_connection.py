"""A connection by itself: how it parses what arrives, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from litestar.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from tollkeeper.api.http.connection import SLOW_S, Connection
from tollkeeper.api.http.serve import configuration
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.service.process import PATIENCE_S

pytestmark = pytest.mark.anyio

_SMALL = 4096
"""The bytes that each side's kernel holds, so that most of a larger answer stays in the service."""


async def listen(
    app: ASGIApp, state: ServerState, **settings: Any
) -> tuple[asyncio.Server, socket.socket]:
    """A listener of connections, and a client's socket that is connected to it."""
    config, loop = configuration(app, Settings(**settings)), asyncio.get_running_loop()
    config.load()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SMALL)
    server = await loop.create_server(
        lambda: config.http_protocol_class(config, state, {}, loop),  # type: ignore[call-arg]
        sock=listener,
    )
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    client.setblocking(False)
    await loop.sock_connect(client, listener.getsockname())
    return server, client


async def give_much(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with less than makes a connection wait until the client has taken some."""
    body = b"a" * 48_000
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def answer_read(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request to `/read` once its body has arrived, any other before; `/much` with much."""
    if scope["path"] == "/much":
        await give_much(scope, receive, send)
        return
    while scope["path"] == "/read":
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return
        if not message["more_body"]:
            break
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ends", [False, True], ids=["open", "ended"])
async def test_a_client_that_takes_nothing_is_closed_whatever_else_it_sends(ends: bool) -> None:
    # All at once: each waits for its limits.
    async with asyncio.TaskGroup() as clients:
        for then in (
            b"",
            b"GET",
            b"no http\r\n\r\n",
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n",
        ):
            clients.create_task(close_one_that_takes_nothing(then, ends=ends))


async def close_one_that_takes_nothing(then: bytes, *, ends: bool) -> None:
    state = ServerState()
    server, client = await listen(give_much, state, idle_seconds=1, body_seconds=1)
    async with server:
        with client:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(lambda: state.total_requests == 1)
            # If it is held up for longer than the limits, it has been closed before.
            with suppress(OSError):
                await loop.sock_sendall(client, then)
                if ends:
                    client.shutdown(socket.SHUT_WR)
            await until(lambda: not state.connections)


_BODY_BEGUN = b" HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1"


async def test_a_client_that_keeps_the_service_waiting_gives_way_when_places_run_short() -> None:
    # All at once: each waits until it is slow.
    async with asyncio.TaskGroup() as clients:
        for sent in (
            b"POST /read" + _BODY_BEGUN,
            b"POST /refuse" + _BODY_BEGUN,
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET / HT",
        ):
            clients.create_task(give_way_of_one_that_sent(sent))


async def give_way_of_one_that_sent(sent: bytes) -> None:
    state, asked = ServerState(), b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    server, first = await listen(answer_read, state, connections=2)
    loop, address = asyncio.get_running_loop(), first.getpeername()
    async with server:
        with first, socket.create_connection(address) as second:
            second.setblocking(False)
            for waiting in (first, second):
                await loop.sock_sendall(waiting, sent)
            await asyncio.sleep(2 * SLOW_S)
            with socket.create_connection(address) as newcomer:
                newcomer.setblocking(False)
                await loop.sock_sendall(newcomer, asked)
                async with asyncio.timeout(PATIENCE_S):
                    assert (await loop.sock_recv(newcomer, _SMALL)).startswith(b"HTTP/1.1 200")
            await until(lambda: len(state.connections) == 1)


async def test_a_body_of_empty_lines_is_parsed_in_few_steps() -> None:
    fed: list[bytes] = []

    class Noting:
        """The connection's parser, which notes what it is fed."""

        def __init__(self, parser: Any) -> None:
            self._parser = parser

        def __getattr__(self, name: str) -> Any:
            return getattr(self._parser, name)

        def feed_data(self, data: bytes) -> None:
            fed.append(data)
            self._parser.feed_data(data)

    state = ServerState()
    server, client = await listen(give_much, state)
    async with server:
        with client:
            await until(lambda: bool(state.connections))
            (connection,) = state.connections
            assert isinstance(connection, Connection)
            connection.parser = Noting(connection.parser)
            body = b"\r\n\r\n" * 10_000
            head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
            await asyncio.get_running_loop().sock_sendall(client, head + body)
            await until(lambda: len(b"".join(fed)) == len(head + body))
    assert len(fed) < 300
