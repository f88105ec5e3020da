"""How soon does a joining node own its share, and how soon are all its windows complete?

    python -m tollkeeper.bench.joining [PAYMENTS] [--server URL]

The payments of `bench.rebuild` stand in a PostgreSQL database of two shards, half of them in each. The
first node builds its windows from the journal. The next copies them from the first, reads what came
after, and is handed one shard over: its share. Wall seconds until a node owned its share and until the
windows of both shards were complete, and processor seconds until then: of the node's own process, and
of the one that makes its index, which nothing waits for. Both nodes and the database share this
machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg

from tollkeeper.bench.nodes import SHARED, count_whole, cpu_of, in_database, owners
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.rebuild import RULE, entries
from tollkeeper.bench.servers import Server, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.shards import address_of_shard, open_shards
from tollkeeper.engine.journal.postgres.store import insert_rows

BATCH = 1000
ELEMENTS = 40
"""More than the windows' elements of a payment."""


class Start(NamedTuple):
    """Seconds of a node: until it owned its share and until its windows were complete, by the clock;
    until then of its own process's processor time, and of its index's.
    """

    share: float
    complete: float
    own: float
    index: float


def fill(address: str, coming: Iterator[Entry], payments: int) -> None:
    """Append the payments, seven of ten with an update, to the journal of the shard's only account."""
    with closing(connect(address)) as connection:
        ((account, last),) = connection.execute(
            "SELECT max(account), max(place) FROM journal"
        ).fetchall()
        left = islice(coming, payments * 17 // 10)
        while batch := list(islice(left, BATCH)):
            numbered = [
                each._replace(sequence=number, account=account)
                for number, each in enumerate(batch, last + 1)
            ]
            connection.execute("BEGIN")
            with connection:
                insert_rows(connection, [(*each, checksum(each)) for each in numbered])
            last += len(batch)
        connection.execute("UPDATE shards SET last_place = ?", (last,))
        connection.execute("ANALYZE journal")


def start_seconds(server: Server, addresses: list[str], nodes: int, begun: float) -> Start:
    """Wait until so many nodes own all shards, each its share, and until each could own every shard."""
    while len(found := owners(addresses)) < len(addresses) or len(set(found)) < nodes:
        time.sleep(0.2)
    share = time.perf_counter() - begun
    while count_whole(addresses) != [nodes] * len(addresses):
        time.sleep(0.2)
    complete = time.perf_counter() - begun
    return Start(share, complete, *cpu_of(server))


def measure(server: str, payments: int) -> list[list[Cell]]:
    with TemporaryDirectory(prefix="toll-joining-") as name, own_database(server) as url:
        first, second = Path(name) / "0", Path(name) / "1"
        rule = Path(name) / "velocity.rule"
        rule.write_text(RULE)
        open_shards(url, len(SHARED))
        addresses = [address_of_shard(url, number) for number in range(1, len(SHARED) + 1)]
        with in_database(url):
            keys = [new_key(first, account=account) for account in SHARED]
            for account in SHARED:
                toll(first, "publish", str(rule), "--account", account)
            for address in addresses:
                fill(address, entries(payments // len(SHARED)), payments // len(SHARED))
            second.mkdir()
            copy(first / KEY_FILE, second)
            cap = str(ELEMENTS * payments)
            caps = ("--windows-cap", cap, "--windows-total-cap", cap)
            begun = time.perf_counter()
            with serving(first, keys[0], *caps) as owner:
                by_journal = start_seconds(owner, addresses, 1, begun)
                (before, _), begun = cpu_of(owner), time.perf_counter()
                with serving(second, keys[0], *caps) as joining:
                    by_owner = start_seconds(joining, addresses, 2, begun)
                    given = cpu_of(owner)[0] - before
        return [
            ["from the journal, both shards", *by_journal, None],
            ["from the owner, one of two", *by_owner, given],
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("payments", nargs="?", type=int, default=100_000)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    given = parser.parse_args()
    with psycopg.connect(given.server, connect_timeout=5):
        rows = measure(given.server, given.payments)
    show(
        f"{given.payments:,} payments in two shards, seven of ten with an update",
        [
            *("a node gets its windows", "s until it owns its share", "s until all are complete"),
            *("CPU s, its own", "its index", "the owner"),
        ],
        rows,
    )


if __name__ == "__main__":
    main()
