"""A whole request over HTTP, beside Litestar's ordinary handler in the same run.

    python -m tollkeeper.bench.http [--seconds 4] [--rounds 3]

`wrk` sends unique payments of 1.9 KB. The service does all it does for a payment: every field rule,
the shipped scorecard, `web_checkout.rule`, one durable commit. The peers decode the same body into
the same types and answer with a constant; one of them keeps nothing, the other commits one
transaction per request. The rounds alternate, the figures are medians. CPU is the server's alone.
"""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvicorn
import uvloop
from litestar import Litestar, post
from msgspec import Struct

from tollkeeper.bench.servers import (
    ACCOUNT,
    Server,
    cpu_seconds,
    free_port,
    new_key,
    serving,
    started,
    toll,
)
from tollkeeper.engine.journal import schema
from tollkeeper.engine.loading import SHIPPED
from tollkeeper.engine.payment import CreationBody

LOAD = Path(__file__).with_name("http.lua")
CONNECTIONS = 32
PEERS = ("typed", "transaction")
NAMES = {
    "typed": "typed handler, nothing kept",
    "transaction": "typed handler, one transaction a request",
    "lean": "the whole service, 3 windows",
    "shipped": "the whole service, the shipped scorecard",
}


LEAN_SCORECARD = """scorecard bot_behaviour
  baseline 0.02
  let cards = distinct(payments.method.card.fingerprint by user.id over 24h)
  signal library_client adds 4.6 when device.client.kind == "library"
  signal contradicting_headers adds 3.4 when device.client.consistent == false
  signal cards_of_user adds 0.8 * min(cards - 3, 6) when cards > 3
"""
LEAN_RULE = """rule web_checkout
  let payments_of_device = count(payments by device.fingerprint.id over 1h)
  let spent = sum(payments.amount by user.id, currency over 24h)
  condition automated when score >= 0.9 then deny
  condition busy_device when payments_of_device > 100 then challenge
  condition large when currency == "BRL" and spent > 5000 then challenge
"""


class Result(Struct, frozen=True):
    id: str
    status: str


class Answer(Struct, frozen=True):
    payment: Result


@dataclass(frozen=True)
class Measured:
    """A few seconds of load: `cpu` of the server's process in seconds, latencies in ms."""

    requests: int
    refused: int
    seconds: float
    cpu: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Driven:
    """A server and how it did, round by round."""

    name: str
    server: Server
    full: list[Measured] = field(default_factory=list)
    half: list[Measured] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
        folder = Path(place)
        driven = [Driven(name, running.enter_context(peer(name, folder))) for name in PEERS]
        for name in ("lean", "shipped"):
            key = furnish(folder / name, name)
            driven.append(Driven(name, running.enter_context(serving(folder / name, key))))
        warm = [load(each.server, 1) for each in driven]
        for _ in range(options.rounds):
            for each in driven:
                each.full.append(load(each.server, options.seconds))
        for _ in range(options.rounds):
            for each in driven:
                rate = median(one.requests / one.seconds for one in each.full) / 2
                pause = max(1, round(1000 * CONNECTIONS / rate))
                each.half.append(load(each.server, options.seconds, pause))
        print(table(driven))
        running.close()
        for each, first in zip(driven, warm, strict=True):
            if each.name not in PEERS:
                print_stored(folder / each.name, [first, *each.full, *each.half])


def table(driven: Sequence[Driven]) -> str:
    lines = [
        "| one process, 32 connections | requests/s | × | CPU µs each | × | p99 ms, half load | × |",
        "|---|---|---|---|---|---|---|",
    ]
    rate0, cpu0, p990 = figures(driven[0])
    for each in driven:
        rate, cpu, p99 = figures(each)
        lines.append(
            f"| {NAMES[each.name]} | {rate:.0f} | {rate / rate0:.2f} | {cpu:.0f} "
            f"| {cpu / cpu0:.2f} | {p99:.1f} | {p99 / p990:.2f} |"
        )
    return "\n".join(lines)


def figures(driven: Driven) -> tuple[float, float, float]:
    """Requests a second, µs of CPU a request, p99 in ms at half load."""
    return (
        median(each.requests / each.seconds for each in driven.full),
        median(each.cpu / each.requests for each in driven.full) * 1e6,
        median(each.p99 for each in driven.half),
    )


def print_stored(folder: Path, acknowledged: Sequence[Measured]) -> None:
    with closing(schema.connect_for_reading(folder)) as connection:
        (stored,) = connection.execute("SELECT count(*) FROM journal WHERE kind = 1").fetchone()
    answered = sum(each.requests for each in acknowledged)
    refused = sum(each.refused for each in acknowledged)
    print(f"\n{answered} answered, {refused} of them refused, {stored} stored")


def load(server: Server, seconds: int, pause_ms: int = 0) -> Measured:
    """Drives the server with `wrk`; with a pause, each client waits that long on average."""
    before, started = cpu_seconds(server.process.pid), time.perf_counter()
    command = [
        "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(LOAD), server.url,
    ]  # fmt: skip
    environment = {**os.environ, "BENCH_KEY": server.key, "BENCH_PAUSE_MS": str(pause_ms)}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    took = time.perf_counter() - started
    return Measured(
        requests=int(found(r"(\d+) requests in", told.stdout)),
        refused=int(found(r"Non-2xx or 3xx responses: (\d+)", told.stdout, "0")),
        seconds=took,
        cpu=cpu_seconds(server.process.pid) - before,
        p50=milliseconds(found(r"50%\s+([\d.]+\w+)", told.stdout)),
        p99=milliseconds(found(r"99%\s+([\d.]+\w+)", told.stdout)),
    )


def found(pattern: str, text: str, otherwise: str | None = None) -> str:
    match = re.search(pattern, text)
    if match is None:
        assert otherwise is not None, text
        return otherwise
    return match[1]


def milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def furnish(folder: Path, name: str) -> str:
    """An account with its rule, and for `lean` its scorecard, in force; its key."""
    key = new_key(folder, "payments")
    files = {"web_checkout": (SHIPPED / "web_checkout.rule").read_text()}
    if name == "lean":
        files = {"web_checkout": LEAN_RULE, "bot_behaviour": LEAN_SCORECARD}
    for stem, text in files.items():
        file = folder.with_name(f"{stem}.rule")
        file.write_text(text)
        toll(folder, "publish", str(file), "--account", ACCOUNT)
    return key


@contextmanager
def peer(name: str, folder: Path) -> Iterator[Server]:
    port = free_port()
    arguments = f"{name!r}, {str(folder)!r}, {port}"
    code = f"from tollkeeper.bench.http import serve_peer; serve_peer({arguments})"
    with started([sys.executable, "-c", code], port, "/") as server:
        yield server


def serve_peer(name: str, folder: str, port: int) -> None:
    """Litestar's ordinary handler: the body comes in typed, a Struct goes out."""
    answer = Answer(Result("0", "initiated"))
    database = sqlite3.connect(Path(folder, "peer.db"), isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        database.execute(f"PRAGMA {setting}")
    database.execute("CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, body TEXT)")

    @post("/v1/payments")
    async def typed(data: CreationBody) -> Answer:  # noqa: ARG001 - decoding it is the work
        return answer

    @post("/v1/payments")
    async def transaction(data: CreationBody) -> Answer:
        database.execute("INSERT INTO payments (body) VALUES (?)", (data.payment.merchant.id,))
        return answer

    app = Litestar([typed if name == "typed" else transaction], openapi_config=None)
    uvloop.install()
    uvicorn.run(app, port=port, http="httptools", log_config=None, access_log=False)


if __name__ == "__main__":
    main()
