"""What does the event loop use for a payment by each way: plain, ordinary, and Litestar's?

    python -m tollkeeper.bench.ways [--payments 2000] [--rounds 5]
    valgrind --tool=callgrind --separate-threads=yes --instr-atstart=no \
        python -m tollkeeper.bench.ways --payments 640 --rounds 2 --counted plain

Requests are passed to the connections' protocols as bytes, and answers taken from them, so that no
socket is measured. All three run in one process and alternate. The ordinary way is the same
service's, for requests that aren't plain (`api/http/plain.py`); Litestar's is its typed handler,
which stores nothing (`bench.http`). The figures are µs of processor time, the least of the rounds.
Under callgrind only the `--counted` one runs, and its last round is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import uvicorn
import uvloop
from litestar import Litestar, post
from uvicorn.server import ServerState

from tollkeeper.api.http.app import plain_payments, public_app, service_of
from tollkeeper.api.http.logs import logging_to
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.serve import SERVICE_COLLECTS_AT, configuration
from tollkeeper.api.http.settings import Settings
from tollkeeper.bench.http import Answer, Result
from tollkeeper.bench.payments import payment
from tollkeeper.bench.request import TRAFFIC, writer_seconds
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.intake.payment import CreationBody
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.verbs import Verb
from tollkeeper.engine.runtime import Engine

AT_ONCE = 32
SETTINGS = Settings(key_reports=1_000_000, account_reports=1_000_000)
PLAIN, ORDINARY, TYPED = "plain", "ordinary", "typed"
NAMES = {PLAIN: "the plain way", ORDINARY: "the ordinary way", TYPED: "typed handler, nothing kept"}


class AnswerCount:
    """The number of answers still awaited, and the waiter for the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self.last: asyncio.Future[None] | None = None

    def take(self) -> None:
        self.count -= 1
        if not self.count and self.last is not None:
            self.last.set_result(None)


class Taker(asyncio.Transport):
    """The other end of a connection: takes answers, and counts each one once its last byte has
    arrived.
    """

    def __init__(self, awaited: AnswerCount) -> None:
        super().__init__()
        self._awaited = awaited
        self._told = b""
        self._is_closing = False

    def write(self, data: Any) -> None:
        self._told += data
        head, _, body = self._told.partition(b"\r\n\r\n")
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if length and len(body) == int(length):
            assert head.startswith(b"HTTP/1.1 201"), head
            self._told = b""
            self._awaited.take()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def pause_reading(self) -> None:
        """Ignored: nothing more is sent before all answers have come."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


class Way:
    """Connections of one configuration, as many as requests `at_once`, and their µs per payment."""

    def __init__(self, config: uvicorn.Config, at_once: int = AT_ONCE) -> None:
        config.load()
        self.awaited = AnswerCount()
        self.loop_us: list[float] = []
        self.writer_us: list[float] = []
        state = ServerState()
        state.default_headers = [(b"date", b"Tue, 24 Nov 2026 12:00:00 GMT")]
        made: Any = config.http_protocol_class
        self.connections = [
            made(config=config, server_state=state, app_state={}) for _ in range(at_once)
        ]
        for each in self.connections:
            each.connection_made(Taker(self.awaited))

    async def answer(self, requests: Sequence[bytes]) -> None:
        """Answer the requests, several at once."""
        at_once = len(self.connections)
        for start in range(0, len(requests), at_once):
            sent = requests[start : start + at_once]
            self.awaited.count = len(sent)
            self.awaited.last = asyncio.get_running_loop().create_future()
            for connection, request in zip(self.connections, sent, strict=False):
                connection.data_received(request)
            await self.awaited.last

    async def measure(self, requests: Sequence[bytes]) -> None:
        begun, written = time.thread_time(), writer_seconds()
        await self.answer(requests)
        each = len(requests) / 1e6
        self.loop_us.append((time.thread_time() - begun) / each)
        self.writer_us.append((writer_seconds() - written) / each)

    def close(self) -> None:
        for each in self.connections:
            each.connection_lost(None)


def requests_of(random: Random, key: str, count: int) -> list[bytes]:
    made = []
    for _ in range(count):
        body = msgspec.json.encode({"payment": payment(random)})
        head = (
            "POST /v1/payments HTTP/1.1\r\nHost: shop\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


def typed_handler() -> uvicorn.Config:
    answer = Answer(Result("0", "initiated"))

    @post("/v1/payments")
    async def typed(data: CreationBody) -> Answer:  # noqa: ARG001 - decoding it is the work
        return answer

    app = Litestar([typed], openapi_config=None)
    return uvicorn.Config(app, http="httptools", log_config=None, access_log=False)


async def furnish(engine: Engine, name: str) -> str:
    """Make an account with its active files; return its key."""
    verbs: list[Verb] = [CreateAccount("shop")]
    for stem, text in TRAFFIC[name].files.items():
        kind: Any = "scorecard" if stem == "bot_behaviour" else "rule"
        verbs.append(Store("shop", kind, stem, text, activate=True))
    for verb in verbs:
        await verb.perform(engine, "bench", lambda _share: None)
    made = await CreateKey("shop", ("payments",)).perform(engine, "bench", lambda _share: None)
    await rebuild(engine, lambda _share: None)
    assert made.key is not None
    return made.key


def count_instructions(switch: str) -> None:
    """Turn callgrind, which runs this process, `on` or `off`."""
    subprocess.run(["callgrind_control", "-i", switch, str(os.getpid())], capture_output=True)


async def measure_ways(traffic: str, options: argparse.Namespace) -> dict[str, Way]:
    with TemporaryDirectory(prefix="toll-ways-") as name:
        async with open_engine(Path(name), "bench") as engine:
            key = await furnish(engine, traffic)
            service = service_of(engine, SETTINGS)
            app = public_app(service)
            ways = {
                PLAIN: Way(configuration(app, SETTINGS, plain_payments(answering(service)))),
                ORDINARY: Way(configuration(app, SETTINGS)),
                TYPED: Way(typed_handler()),
            }
            random = Random(4)
            for number in range(options.rounds):
                for title, way in ways.items():
                    if options.counted not in (None, title):
                        continue
                    requests = requests_of(random, key, options.payments)
                    gc.collect()
                    is_counted = options.counted and number == options.rounds - 1
                    if is_counted:
                        count_instructions("on")
                    await way.measure(requests)
                    if is_counted:
                        count_instructions("off")
            for way in ways.values():
                way.close()
            return ways


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--counted", choices=NAMES)
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*SERVICE_COLLECTS_AT)
    rows: list[list[Cell]] = []
    for traffic in ("3 windows",) if options.counted else ("3 windows", "shipped"):
        with (
            Path(os.devnull).open("w") as nowhere,
            logging_to(nowhere),
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            ways = runner.run(measure_ways(traffic, options))
        if options.counted:
            continue
        floor = min(ways[TYPED].loop_us)
        rows += [
            [
                f"{NAMES[title]}, {traffic}" if title != TYPED else NAMES[title],
                min(way.loop_us),
                min(way.loop_us) / floor,
                min(way.writer_us),
            ]
            for title, way in ways.items()
        ]
    if rows:
        heads = ["", "the loop's thread", "×", "the writer's"]
        show(f"µs of CPU a payment without sockets, {AT_ONCE} at once", heads, rows)


if __name__ == "__main__":
    main()
