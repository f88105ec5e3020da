"""How soon does a joining node have its windows: copied from the owner, and built from the journal?

    python -m tollkeeper.bench.joining [PAYMENTS] [--server URL]

The payments of `bench.rebuild` are imported into a PostgreSQL database. The first node builds its
windows from the journal; the next copies them from the first, and reads what came after. Wall
seconds until each node could own the journal, and processor seconds until then: of the node's own
process, and of the one that makes its index, which nothing waits for. Both nodes and the database
share this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from itertools import islice
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg

from tollkeeper.bench.nodes import in_database, wait_for_whole
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.rebuild import configure, entries, store
from tollkeeper.bench.servers import Server, children, cpu_seconds, serving, toll
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.folder_key import KEY_FILE


class Start(NamedTuple):
    """Seconds until a node could own the journal: by the clock, of its own process's processor time,
    and of its index's.
    """

    clock: float
    own: float
    index: float


def start_seconds(server: Server, url: str, count: int, begun: float) -> Start:
    """Wait until so many nodes could own the journal."""
    wait_for_whole(url, count)
    clock, pid = time.perf_counter() - begun, server.process.pid
    index = sum(map(cpu_seconds, children(pid)))
    return Start(clock, cpu_seconds(pid) - index, index)


def measure(server: str, payments: int) -> list[list[Cell]]:
    with TemporaryDirectory(prefix="toll-joining-") as name, own_database(server) as url:
        embedded, first, second = (Path(name) / each for each in ("embedded", "0", "1"))
        asyncio.run(configure(embedded))
        store(embedded, islice(entries(payments), payments * 17 // 10))
        with in_database(url):
            toll(first, "import", "--from", str(embedded))
            key = toll(first, "keys", "create", "--account", "shop").strip()
            second.mkdir()
            copy(first / KEY_FILE, second)
            begun = time.perf_counter()
            with serving(first, key) as owner:
                by_journal = start_seconds(owner, url, 1, begun)
                before, begun = cpu_seconds(owner.process.pid), time.perf_counter()
                with serving(second, key) as joining:
                    by_owner = start_seconds(joining, url, 2, begun)
                    given = cpu_seconds(owner.process.pid) - before
        return [
            ["from the journal", *by_journal, None],
            ["from the owner", *by_owner, given],
            ["×", *(a / b for a, b in zip(by_owner, by_journal, strict=True)), None],
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("payments", nargs="?", type=int, default=100_000)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    given = parser.parse_args()
    with psycopg.connect(given.server, connect_timeout=5):
        rows = measure(given.server, given.payments)
    show(
        f"{given.payments:,} payments, seven of ten with an update",
        ["a node's windows", "s by the clock", "CPU s, its own", "its index", "the owner"],
        rows,
    )


if __name__ == "__main__":
    main()
