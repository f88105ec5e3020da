"""What is the least that a durable payment can cost over HTTP, and which threads take the rest?

    python -m tollkeeper.bench.least [--seconds 4] [--rounds 5] [--rate 2000]

The minimum is not a service: httptools parses the request, msgspec decodes the body into the
service's types, a thread writes it as one row, with one durable commit for all that wait, and the
answer is a constant. No key, limit, check, window, rule, log line or index. Compared with
Litestar's ordinary handler, which stores nothing (`bench.http`), and the whole service. The rounds
alternate; the figures are medians, with CPU by thread. Finally each gets the same steady load.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

import httptools
import msgspec
import uvloop

from tollkeeper.bench.http import NAMES, furnish, peer
from tollkeeper.bench.load import load, pause_for
from tollkeeper.bench.servers import (
    UNBOUNDED,
    Server,
    calling,
    children,
    cpu_seconds,
    free_port,
    serving,
)
from tollkeeper.bench.tables import show
from tollkeeper.engine.intake.payment import CreationBody

SERVICES = ("lean", "shipped")
_ANSWER = b'{"payment":{"id":"0","status":"initiated","analyses":{"rule":null}}}'
_HEAD = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_WHOLE = _HEAD % len(_ANSWER) + _ANSWER


class Rows:
    """One row per body, written by a thread of its own; all that wait share one commit."""

    def __init__(self, folder: str, loop: asyncio.AbstractEventLoop) -> None:
        self._folder = folder
        self._loop = loop
        self._waiting: list[tuple[bytes, Connection]] = []
        self._queue: SimpleQueue[list[tuple[bytes, Connection]]] = SimpleQueue()
        threading.Thread(target=self._write, daemon=True).start()

    def add(self, body: bytes, connection: Connection) -> None:
        if not self._waiting:
            self._loop.call_soon(self._hand_over)
        self._waiting.append((body, connection))

    def _hand_over(self) -> None:
        self._queue.put(self._waiting)
        self._waiting = []

    def _write(self) -> None:
        database = sqlite3.connect(Path(self._folder, "least.db"), isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            database.execute(f"PRAGMA {setting}")
        database.execute("CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, body BLOB)")
        while True:
            rows = self._queue.get()
            while not self._queue.empty():
                rows += self._queue.get()
            marks = ", ".join(["(?)"] * len(rows))
            database.execute(
                f"INSERT INTO payments (body) VALUES {marks}", [row[0] for row in rows]
            )
            self._loop.call_soon_threadsafe(_answer_all, rows)


class Connection(asyncio.Protocol):
    """Takes complete requests, one at a time."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if body:
            _decode(body)
            self._rows.add(body, self)
        else:
            self.transport.write(_WHOLE)


_decode = msgspec.json.Decoder(CreationBody).decode


def _answer_all(rows: list[tuple[bytes, Connection]]) -> None:
    for _, connection in rows:
        connection.transport.write(_WHOLE)


def serve_least(folder: str, port: int) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        rows = Rows(folder, loop)
        server = await loop.create_server(lambda: Connection(rows), "127.0.0.1", port)
        await server.serve_forever()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@contextmanager
def least(folder: Path) -> Iterator[Server]:
    port = free_port()
    call = f"tollkeeper.bench.least.serve_least({str(folder)!r}, {port})"
    with calling(call, port, "/") as server:
        yield server


def used(server: Server) -> tuple[float, float, float]:
    """Return seconds of CPU: of the first thread, of the others, of child processes."""
    pid = server.process.pid
    first = others = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        took = int((task / "schedstat").read_text().split()[0]) / 1e9
        if task.name == str(pid):
            first += took
        else:
            others += took
    return first, others, sum(map(cpu_seconds, children(pid)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2000)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
        folder = Path(place)
        servers = {
            NAMES["typed"]: running.enter_context(peer("typed", folder)),
            "the least that is durable": running.enter_context(least(folder)),
        }
        for name in SERVICES:
            key = furnish(folder / name, name)
            servers[NAMES[name]] = running.enter_context(serving(folder / name, key, *UNBOUNDED))
        figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in servers}
        for server in servers.values():
            load(server, 1)
        for _ in range(options.rounds):
            for name, server in servers.items():
                before = used(server)
                measured = load(server, options.seconds)
                spent = [
                    (after - first) / measured.requests * 1e6
                    for first, after in zip(before, used(server), strict=True)
                ]
                figures[name].append((measured.rate, *spent, sum(spent)))
        paced: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, server in servers.items():
                measured = load(server, options.seconds, pause_ms=pause_for(options.rate))
                paced[name].append(measured.p99)
    rows = {
        name: [median(column) for column in zip(*of, strict=True)] for name, of in figures.items()
    }
    floor = rows[NAMES["typed"]]
    show(
        "µs of CPU a payment",
        [
            *("", "requests/s", "×", "its loop", "other threads", "index", "together", "×"),
            f"p99 ms at {options.rate:,} requests/s",
        ],
        [
            [
                name,
                rate,
                rate / floor[0],
                *spent,
                together,
                together / floor[-1],
                median(paced[name]),
            ]
            for name, (rate, *spent, together) in rows.items()
        ],
    )


if __name__ == "__main__":
    main()
