"""What does a whole request cost over HTTP, compared with Litestar's ordinary handler?

    python -m tollkeeper.bench.http [--seconds 4] [--rounds 5]

`wrk` sends unique payments of 1.6 KB. The service does everything: every field rule, the shipped
scorecard, `web_checkout.rule`, one durable commit. The peers decode the same body into the same
types and answer with a constant; one of them stores nothing, the other commits one transaction per
request. One service runs without the index process, as on a machine with room for it. The rounds
alternate; the figures are medians. CPU is the server's with its child processes.
"""

from __future__ import annotations

import argparse
import signal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvicorn
import uvloop
from litestar import Litestar, post
from msgspec import Struct

from tollkeeper.bench.load import LoadResult, load, pause_for
from tollkeeper.bench.servers import (
    ACCOUNT,
    UNBOUNDED,
    Server,
    calling,
    free_port,
    index_process,
    new_key,
    serving,
    tell_index,
    toll,
)
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.intake.payment import CreationBody
from tollkeeper.engine.journal import schema
from tollkeeper.engine.programs.load import SHIPPED

PEERS = ("typed", "transaction")
SERVICES = {"lean": "lean", "unindexed": "lean", "shipped": "shipped"}
"""Each service, and the setup of its account."""
NAMES = {
    "typed": "typed handler, nothing kept",
    "transaction": "typed handler, one transaction a request",
    "lean": "the whole service, 3 windows",
    "unindexed": "the same, the process of its index stopped",
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
PLAIN_SCORECARD = """scorecard bot_behaviour
  baseline 0.02
  signal library_client adds 4.6 when device.client.kind == "library"
  signal contradicting_headers adds 3.4 when device.client.consistent == false
"""
PLAIN_RULE = """rule web_checkout
  condition automated when score >= 0.9 then deny
  condition large when amount > 5000 then challenge
"""


class Result(Struct, frozen=True):
    id: str
    status: str


class Answer(Struct, frozen=True):
    payment: Result


@dataclass(frozen=True)
class ServerRun:
    """A server and its results, round by round."""

    name: str
    server: Server
    full: list[LoadResult] = field(default_factory=list)
    half: list[LoadResult] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
        folder = Path(place)
        driven = [ServerRun(name, running.enter_context(peer(name, folder))) for name in PEERS]
        for name, furnished in SERVICES.items():
            key = furnish(folder / name, furnished)
            driven.append(
                ServerRun(name, running.enter_context(serving(folder / name, key, *UNBOUNDED)))
            )
            if name == "unindexed":
                tell_index(index_process(driven[-1].server), signal.SIGSTOP)
        warm = [load(each.server, 1) for each in driven]
        for _ in range(options.rounds):
            for each in driven:
                each.full.append(load(each.server, options.seconds))
        for _ in range(options.rounds):
            for each in driven:
                pause = pause_for(median(one.rate for one in each.full) / 2)
                each.half.append(load(each.server, options.seconds, pause_ms=pause))
        running.close()
        show_figures(driven)
        show_stored(
            (NAMES[each.name], folder / each.name, [first, *each.full, *each.half])
            for each, first in zip(driven, warm, strict=True)
            if each.name not in PEERS
        )


def show_figures(driven: Sequence[ServerRun]) -> None:
    rows = {each.name: figures(each) for each in driven}
    floor, single, lean = rows["typed"], rows["transaction"], rows["lean"]
    show(
        "One process, 32 connections",
        ["", "requests/s", "×", "CPU µs each", "×", "p99 ms, half load", "×"],
        [
            [
                NAMES[name],
                *(cell for value, first in zip(row, floor, strict=True) for cell in (value, value / first)),
            ]
            for name, row in rows.items()
        ],
    )  # fmt: skip
    show_targets(
        [
            Target("rate beside the typed handler, 3 windows", lean[0] / floor[0], at_least=1),
            Target("rate beside one transaction a request", lean[0] / single[0], at_least=3.5),
            Target("p99 at half load beside the typed handler's", lean[2] / floor[2], at_most=2),
        ]
    )


def figures(driven: ServerRun) -> tuple[float, float, float]:
    """Return requests a second, µs of CPU per request, p99 in ms at half load."""
    return (
        median(each.rate for each in driven.full),
        median(each.cpu_each for each in driven.full),
        median(each.p99 for each in driven.half),
    )


def show_stored(services: Iterable[tuple[str, Path, Sequence[LoadResult]]]) -> None:
    rows = []
    for name, folder, loads in services:
        with closing(schema.connect_for_reading(folder)) as connection:
            (stored,) = connection.execute("SELECT count(*) FROM journal WHERE kind = 1").fetchone()
        rows.append(
            [
                name,
                sum(each.requests for each in loads),
                sum(each.refused for each in loads),
                stored,
            ]
        )
    show(
        "What became of the payments (those in flight when a load ended are stored, not counted)",
        ["", "answered", "refused", "stored"],
        rows,
    )


def furnish(folder: Path, name: str) -> str:
    """Make an account with its active rule, and its scorecard except for `shipped`; return its key.

    `lean` reads 3 windows, `plain` no history.
    """
    key = new_key(folder, "payments")
    files = {
        "shipped": {"web_checkout": (SHIPPED / "web_checkout.rule").read_text()},
        "lean": {"web_checkout": LEAN_RULE, "bot_behaviour": LEAN_SCORECARD},
        "plain": {"web_checkout": PLAIN_RULE, "bot_behaviour": PLAIN_SCORECARD},
    }
    for stem, text in files[name].items():
        file = folder.with_name(f"{stem}.rule")
        file.write_text(text)
        toll(folder, "publish", str(file), "--account", ACCOUNT)
    return key


@contextmanager
def peer(name: str, folder: Path) -> Iterator[Server]:
    port = free_port()
    call = f"tollkeeper.bench.http.serve_peer({name!r}, {str(folder)!r}, {port})"
    with calling(call, port, "/") as server:
        yield server


def serve_peer(name: str, folder: str, port: int) -> None:
    """Litestar's ordinary handler: a typed body in, a Struct out."""
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
