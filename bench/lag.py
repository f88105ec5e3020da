"""Do payments wait for the index that follows them, and how far is it behind?

    python -m tollkeeper.bench.lag [--payments 300000] [--seconds 8]

A service starts with payments in its journal that its index lacks. While others come at a steady
pace, the index's process is stopped, or let on to catch up, in turns that change places. Then, once
all is taken in, the index is asked again and again how far it is behind, while payments come.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench.http import furnish
from tollkeeper.bench.large_index import append
from tollkeeper.bench.load import Measured, load, pause_for
from tollkeeper.bench.servers import Server, children, cpu_seconds, serving
from tollkeeper.bench.tables import Cell, Target, show, show_targets
from tollkeeper.engine.open import now

RATE = 400
"""So many payments a second come."""
TURNS = 6
EACH_S = 0.05
"""How often the index is asked how far it is behind."""
CONNECTIONS = 16
SOON_MS = 1_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=3e5)
    parser.add_argument("--seconds", type=int, default=8)
    asked = parser.parse_args()
    payments = int(asked.payments)
    with TemporaryDirectory(prefix="toll-lag-") as name:
        folder = Path(name) / "data"
        key = furnish(folder, "shipped")
        append(folder, payments, now())
        with serving(folder, key, "--key-work", "100000", "--account-work", "100000") as server:
            index = index_process(server)
            stopped, following = Turns(), Turns()
            os.kill(index, signal.SIGSTOP)
            pay(server, asked.seconds)
            for turn in range(TURNS):
                for turns in (stopped, following)[:: -1 if turn % 2 else 1]:
                    go_on = turns is following
                    os.kill(index, signal.SIGCONT if go_on else signal.SIGSTOP)
                    turns.take(server, index, asked.seconds)
            os.kill(index, signal.SIGCONT)
            left = lag(server)
            while lag(server) > SOON_MS:
                sleep(EACH_S)
            with lags(server) as found:
                pay(server, 2 * asked.seconds)
    show(
        f"{RATE} payments a second beside an index that lacks {payments:,}, medians of {TURNS} turns",
        ["the index", "p50 ms", "p99 ms", "ms of its CPU a second"],
        [stopped.row("stopped"), following.row("catching up")],
    )
    behind = quantiles(found, n=100)
    show("Behind, once it has all", ["", "ms"], [["median", median(found)], ["p99", behind[-1]]])
    show_targets(
        [
            Target("p99 of payments, × the index stopped", following.p99() / stopped.p99(), 1.1),
            Target("p99 of how far it is behind, s", behind[-1] / 1000, 1),
            Target("still behind after the turns, s", left / 1000, at_least=SOON_MS / 1000),
        ]
    )


class Turns:
    """What payments took, and the index's process of a processor, in several turns."""

    def __init__(self) -> None:
        self._measured: list[Measured] = []
        self._cpu: list[float] = []

    def take(self, server: Server, index: int, seconds: float) -> None:
        before, begun = cpu_seconds(index), perf_counter()
        self._measured.append(pay(server, seconds))
        self._cpu.append((cpu_seconds(index) - before) / (perf_counter() - begun))

    def p99(self) -> float:
        return median(each.p99 for each in self._measured)

    def row(self, name: str) -> list[Cell]:
        p50 = median(each.p50 for each in self._measured)
        return [name, p50, self.p99(), 1000 * median(self._cpu)]


def pay(server: Server, seconds: float) -> Measured:
    return load(server, seconds, connections=CONNECTIONS, pause_ms=pause_for(RATE, CONNECTIONS))


def index_process(server: Server) -> int:
    """The id of the process that keeps the index, once it is there."""
    while True:
        for child in children(server.process.pid):
            if b"tollkeeper.engine.search.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        sleep(EACH_S)


def lag(server: Server) -> int:
    """By how many milliseconds the index is behind."""
    headers = {"authorization": f"Bearer {server.key}"}
    answer = httpx.get(f"{server.url}/v1/payments/count?since=1s", headers=headers, timeout=60)
    answer.raise_for_status()
    found: int = answer.json()["lag_ms"]
    return found


@contextmanager
def lags(server: Server) -> Iterator[list[int]]:
    """By how much the index is behind, asked every `EACH_S` until the block ends."""
    found: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.wait(EACH_S):
            found.append(lag(server))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


if __name__ == "__main__":
    main()
