"""How soon does a joining node own its share, and how soon are all its windows complete?

    python -m tollkeeper.bench.joining [PAYMENTS] [--server URL] [--keep FOLDER]

The payments of `bench.rebuild` stand in a PostgreSQL database of two shards, half of them in each. The
first node builds its windows from the journal. The next copies them from the first, reads what came
after, and is handed one shard over: its share. Wall seconds until a node owned its share and until the
windows of both shards were complete, and processor seconds until then: of the node's own process, and
of the one that makes its index, which nothing waits for. Both nodes and the database share this
machine.

With `--keep` a folder with what the first node has, and the database `toll_bench_` with that folder's
name, are made once and stay for further runs, in which the first node has windows of its own. Whoever is
done removes both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tollkeeper.bench.nodes import SHARED, count_whole, cpu_of, in_database, owners
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.rebuild import RULE, entries
from tollkeeper.bench.servers import Server, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.shards import address_of_shard, open_shards
from tollkeeper.engine.journal.postgres.store import insert_rows
from tollkeeper.engine.velocity.snapshot import FILE

FIRST = "first"
"""The first node's folder."""
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
    indexing: float


def fill(address: str, payments: int) -> None:
    """Append the payments, seven of ten with an update, to the journal of the shard's only account."""
    with closing(connect(address)) as connection:
        ((account, last),) = connection.execute(
            "SELECT max(account), max(place) FROM journal"
        ).fetchall()
        left = islice(entries(payments), payments * 17 // 10)
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


@contextmanager
def kept_database(server: str, folder: Path) -> Iterator[str]:
    """Yield the address of the folder's database, which is made with the folder and stays."""
    url = urlunsplit(urlsplit(server)._replace(path=f"/toll_bench_{folder.name}"))
    if not folder.exists():
        folder.mkdir(parents=True)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE toll_bench_{folder.name}")
    yield url


def make_shards(url: str, folder: Path, payments: int) -> str:
    """Fill a shard for each account with its part of the payments; returns a key."""
    rule = folder / "velocity.rule"
    rule.write_text(RULE)
    open_shards(url, len(SHARED))
    keys = [new_key(folder / FIRST, account=account) for account in SHARED]
    for account in SHARED:
        toll(folder / FIRST, "publish", str(rule), "--account", account)
    with ProcessPoolExecutor(len(SHARED), get_context("spawn")) as pool:
        list(pool.map(partial(fill, payments=payments // len(SHARED)), addresses_in(url)))
    return keys[0]


def addresses_in(url: str) -> list[str]:
    return [address_of_shard(url, number) for number in range(1, len(SHARED) + 1)]


def measure(url: str, folder: Path, payments: int) -> list[list[Cell]]:
    first, addresses = folder / FIRST, addresses_in(url)
    with in_database(url), TemporaryDirectory(prefix="toll-joining-") as name:
        made = folder / "key"
        if not made.exists():
            made.write_text(make_shards(url, folder, payments))
        key, second = made.read_text(), Path(name)
        copy(first / KEY_FILE, second)
        source = "from its own files" if [*first.rglob(FILE)] else "from the journal"
        cap = str(ELEMENTS * payments)
        caps = ("--windows-cap", cap, "--windows-total-cap", cap)
        begun = time.perf_counter()
        with serving(first, key, *caps) as owner:
            of_first = start_seconds(owner, addresses, 1, begun)
            (before, _), begun = cpu_of(owner), time.perf_counter()
            with serving(second, key, *caps) as joining:
                of_joining = start_seconds(joining, addresses, 2, begun)
                given = cpu_of(owner)[0] - before
    return [
        [f"{source}, both shards", *of_first, None],
        ["from the owner, one of two", *of_joining, given],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("payments", nargs="?", type=int, default=100_000)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    parser.add_argument(
        "--keep", type=Path, help="a folder for the first node, kept with its database"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.keep is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="toll-joining-")))
            url = stack.enter_context(own_database(given.server))
        else:
            folder = given.keep
            url = stack.enter_context(kept_database(given.server, folder))
        rows = measure(url, folder, given.payments)
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
