"""Do payments wait for the index that follows them, and how far behind is it?

    python -m tollkeeper.bench.lag [--payments 1000000] [--seconds 4] [--turns 16] [--rate 400] [--later 2000]

A service starts with payments in its journal that its index lacks. While others come at a steady
pace, the index's processes are stopped, let on to catch up, and stopped again, in turns that change
places. A p99 is of the payments of all turns together; its ratio is given with the interval that
holds 95 of 100 draws of as many turns, and beside it the ratio of the two that were stopped, which
is what chance alone makes of it. Then as many processes as there are processors want all of them, for
`BUSY_S` or until the index has all, and what it takes in is counted.
Once all is taken in, the index is asked again and again how far it is behind, while `--later` payments
a second come, or as many as the machine carries.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench.background import repeating
from tollkeeper.bench.http import furnish
from tollkeeper.bench.large_index import append
from tollkeeper.bench.latencies import Latencies, compare
from tollkeeper.bench.load import LoadResult, load, pause_for
from tollkeeper.bench.servers import (
    Server,
    bytes_written,
    children,
    cpu_seconds,
    index_process,
    serving,
    tell_index,
)
from tollkeeper.bench.tables import Cell, Target, show, show_targets
from tollkeeper.engine.instants import now
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.search import index_file

EACH_S = 0.05
"""The interval at which the index's lag is queried."""
CONNECTIONS = 32
BUSY_S = 60


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=1e6)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=16)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--later", type=int, default=2000)
    options = parser.parse_args()
    payments = int(options.payments)
    with TemporaryDirectory(prefix="toll-lag-") as name:
        folder = Path(name) / "data"
        key = furnish(folder, "shipped")
        append(folder, payments, now())
        with serving(folder, key, "--key-work", "100000", "--account-work", "100000") as server:
            index = index_process(server)
            stopped, following, control = arms = Turns(), Turns(), Turns()
            tell_index(index, signal.SIGSTOP)
            pay(server, options.rate, options.seconds)
            lacked = count_lacking(folder)
            for turn in range(options.turns):
                first = turn % len(arms)
                for turns in arms[first:] + arms[:first]:
                    if turns is following:
                        let_on(index, folder)
                    else:
                        tell_index(index, signal.SIGSTOP)
                    turns.take(server, index, options.rate, options.seconds)
            lacking = count_lacking(folder)
            let_on(index, folder)
            with busy_loops() as loops:
                begun = perf_counter()
                while (left := count_lacking(folder)) and perf_counter() - begun < BUSY_S:
                    sleep(EACH_S)
                taken = (lacking - left) / (perf_counter() - begun)
            while count_lacking(folder):
                sleep(EACH_S)
            with repeating(partial(lag, server), EACH_S) as found:
                later = pay(server, options.later, 2 * options.seconds)
    show(
        f"{options.rate} payments a second beside an index that lacked {lacked:,} entries at first and "
        f"{lacking:,} at last, {options.turns} turns of {options.seconds} s each",
        [
            "the index",
            "payments a second",
            "p50 ms",
            "p99 ms",
            "ms of CPU a second",
            "MB written a second",
        ],
        [
            stopped.row("stopped"),
            following.row("catching up"),
            control.row("stopped again"),
        ],
    )
    ratio, lowest, highest = compare(following.taken, stopped.taken, control.taken)
    show(
        "p99 of payments, × that with the index stopped",
        ["", "measured", "95 of 100 draws from", "to"],
        [
            ["catching up, × stopped", ratio, lowest, highest],
            ["stopped again, × stopped", *compare(control.taken, stopped.taken)],
        ],
    )
    show(
        f"Beside {loops} processes that want all of the processors",
        ["", "entries a second"],
        [["taken in", taken]],
    )
    lag_percentiles = quantiles(found, n=100)
    show(
        f"Behind, once it has all, at {later.rate:,.0f} payments a second",
        ["", "ms"],
        [["median", median(found)], ["p99", lag_percentiles[-1]]],
    )
    show_targets(
        [
            Target("p99 of payments, × the index stopped", ratio, 1.1),
            Target("p99 of how far it is behind, s", lag_percentiles[-1] / 1000, 1),
        ]
    )


class Turns:
    """Measurements of payments, and what the index's processes used of a processor and wrote to disk,
    in several turns.
    """

    def __init__(self) -> None:
        self.taken: list[LoadResult] = []
        self._cpu: list[float] = []
        self._written: list[float] = []

    def take(self, server: Server, index: int, rate: int, seconds: float) -> None:
        cpu, written, begun = cpu_seconds(index), bytes_written(index), perf_counter()
        self.taken.append(pay(server, rate, seconds))
        took = perf_counter() - begun
        self._cpu.append((cpu_seconds(index) - cpu) / took)
        self._written.append((bytes_written(index) - written) / took)

    def row(self, name: str) -> list[Cell]:
        rate = median(each.rate for each in self.taken)
        times = [1] * len(self.taken)
        p50, p99 = (Latencies(self.taken).percentile(part, times) for part in (0.5, 0.99))
        return [name, rate, p50, p99, 1000 * median(self._cpu), median(self._written) / 1e6]


def pay(server: Server, rate: int, seconds: float) -> LoadResult:
    return load(server, seconds, connections=CONNECTIONS, pause_ms=pause_for(rate, CONNECTIONS))


def let_on(index: int, folder: Path) -> None:
    """Let a stopped index catch up, by a process that begins anew.

    One that was stopped has brought nothing for that long, so another would take its place, which
    takes a share of the processors from payments.
    """
    for process in children(index):
        os.kill(process, signal.SIGKILL)
    os.kill(index, signal.SIGCONT)
    while count_lacking(folder) and not children(index):
        sleep(EACH_S)


def count_lacking(folder: Path) -> int:
    """Return the number of journal entries that the index lacks."""
    with closing(schema.connect_for_reading(folder)) as journal:
        last = reads.last_sequence(journal)
    with closing(index_file.connect_to_read(folder)) as index:
        return last - index_file.read_index_place(index).sequence


def lag(server: Server) -> int:
    """Return the index's lag in milliseconds."""
    headers = {"authorization": f"Bearer {server.key}"}
    answer = httpx.get(f"{server.url}/v1/payments/count?since=1s", headers=headers, timeout=60)
    answer.raise_for_status()
    found: int = answer.json()["lag_ms"]
    return found


@contextmanager
def busy_loops() -> Iterator[int]:
    """As many processes as there are processors, each of which wants all of one; how many."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in os.sched_getaffinity(0)]
    try:
        yield len(loops)
    finally:
        for each in loops:
            each.kill()
            each.wait()


if __name__ == "__main__":
    main()
