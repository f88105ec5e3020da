"""What does the journal cost: with group commits, as it grows, and beside other writes?

    python -m tollkeeper.bench.journal [ROWS]

Fills a journal with up to ROWS entries, by default 10,000 and then 1,000,000: about a minute per
million.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar
from uuid import UUID

import numpy as np
import uvloop

from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.journal import list_contents, reads, schema
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Addition, Entry, Kind, ListEntry, Replacement
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal

T = TypeVar("T")

BODY, OUTCOME = bytes(1_750), bytes(330)
START = 1_760_000_000_000_000
WAITING = 32
FEW = 8
LOG_PAGES = (16, schema.LOG_PAGES, 1_000)
"""The last is SQLite's default."""
APPENDS = 4_000
ROUNDS = 5
PROBES = 2_000
INSERT = f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def entry(sequence: int) -> Entry:
    """Return a payment of about 2.1 KB, with a random id derived from its sequence number."""
    record_id = str(UUID(int=random.Random(sequence).getrandbits(128), version=4))
    arrived = START + sequence * 1_000
    return Entry(sequence, 1, Kind.PAYMENT, record_id, arrived, arrived, BODY, OUTCOME)


def entries(first: int, number: int) -> list[Entry]:
    """Return that many entries from a sequence number on."""
    return [entry(sequence) for sequence in range(first, first + number)]


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder with an empty journal's file."""
    with tempfile.TemporaryDirectory() as name:
        schema.prepare(Path(name))
        yield Path(name)


async def append_all(journal: SqliteJournal, waiting: Iterable[Entry]) -> float:
    """Return the seconds until all are on disk, with at most `WAITING` of them waiting at a time."""
    supply = iter(waiting)

    async def client() -> None:
        for each in supply:
            await journal.append(each)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(WAITING)))
    return time.perf_counter() - start


def append_each(folder: Path, rows: list[Entry]) -> float:
    """Return the seconds with one durable transaction per entry, and nothing else."""
    with closing(schema.connect(folder)) as connection:
        return seconds(lambda: [connection.execute(INSERT, row) for row in rows])


async def group_commit() -> None:
    """Appends a second; rounds of both kinds alternate, in journals of their own."""
    with fresh_folder() as together, fresh_folder() as apart:
        rates: list[tuple[float, float]] = []
        async with open_journal(together, "bench") as journal:
            for number in range(ROUNDS):
                rows = entries(1 + number * APPENDS, APPENDS)
                grouped = APPENDS / await append_all(journal, rows)
                rates.append((grouped, APPENDS / append_each(apart, rows)))
    grouped, single = (median(column) for column in zip(*rates, strict=True))
    ratio = median(a / b for a, b in rates)
    show(
        "Appends on disk, medians of alternating rounds",
        ["", "a second", "×"],
        [["one transaction each", single, 1.0], [f"{WAITING} waiting", grouped, ratio]],
    )


def fill(folder: Path, first: int, last: int) -> None:
    """Put entries into the file without waiting for the disk."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for start in range(first, last + 1, 10_000):
            with connection:
                connection.execute("BEGIN")
                connection.executemany(INSERT, entries(start, min(10_000, last + 1 - start)))


async def point_reads(journal: SqliteJournal, rows: int) -> tuple[float, float]:
    """Return microseconds for `exists` of an unused id and for `states` of a used one, at random."""
    used = [entry(random.randint(1, rows)).id for _ in range(PROBES)]
    unused = [entry(rows * 2 + number).id for number in range(PROBES)]
    start = time.perf_counter()
    for record_id in unused:
        await journal.exists(1, Kind.PAYMENT, record_id)
    middle = time.perf_counter()
    for record_id in used:
        await journal.states(1, record_id)
    end = time.perf_counter()
    return (middle - start) / PROBES * 1e6, (end - middle) / PROBES * 1e6


def read_all(journal: SqliteJournal) -> int:
    """Read every entry, and return how many there are."""
    return sum(map(len, journal.replay()))


async def growth(folder: Path, sizes: list[int]) -> None:
    """How rates and reads change as the journal grows."""
    rows = 0
    found: list[list[Cell]] = []
    for size in sizes:
        fill(folder, rows + 1, size)
        async with open_journal(folder, "bench") as journal:
            exists, states = await point_reads(journal, size)
            start = time.perf_counter()
            await journal.latest(1, Kind.PAYMENT)
            page = time.perf_counter() - start
            replay = seconds(partial(read_all, journal))
            count = seconds(journal.count)
            stored = (folder / schema.DATABASE_FILE).stat().st_size / size
            rate = APPENDS / await append_all(journal, entries(size + 1, APPENDS))
        rows = size + APPENDS
        found.append(
            [f"{size:,}", rate, exists, states, page * 1e3, replay, count * 1e3, round(stored)]
        )
    show(
        "As it grows",
        [
            "entries",
            "appends/s",
            "exists µs",
            "states µs",
            "page ms",
            "replay s",
            "count ms",
            "bytes an entry",
        ],
        found,
    )


def indexes(folder: Path) -> None:
    """Microseconds per entry in transactions of 32, not waiting for the disk, with fewer indexes."""
    found: list[tuple[str, float]] = []
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for left, dropped in (
            ("all", None),
            ("without by_account", "by_account"),
            ("without by_id too", "by_id"),
        ):
            if dropped:
                connection.execute(f"DROP INDEX {dropped}")
            first = reads.last_sequence(connection) + 1
            rows = entries(first, APPENDS)
            taken = seconds(partial(insert_in_groups, connection, rows))
            found.append((left, taken / APPENDS * 1e6))
    show("An append with fewer indexes, not waiting for the disk", ["indexes", "µs"], found)


def insert_in_groups(connection: sqlite3.Connection, rows: list[Entry]) -> None:
    """Insert with one transaction per 32 rows."""
    for start in range(0, len(rows), WAITING):
        commit(connection, rows[start : start + WAITING])


def commits() -> None:
    """Milliseconds of durable commits of a few entries, by the allowed pages of the log."""
    found: list[list[Cell]] = []
    for pages in LOG_PAGES:
        with fresh_folder() as folder, closing(schema.connect(folder)) as connection:
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            rows = entries(1, 3 * APPENDS)
            groups = [rows[start : start + FEW] for start in range(0, len(rows), FEW)]
            taken = [1e3 * seconds(partial(commit, connection, group)) for group in groups]
        half, most = np.percentile(taken, (50, 99))
        found.append([f"{pages:,}", half, most, max(taken), sum(taken) / len(rows)])
    show(
        f"A durable commit of {FEW} entries, by the pages that the write-ahead log may get",
        ["pages", "p50 ms", "p99 ms", "longest ms", "ms an entry"],
        found,
    )


def commit(connection: sqlite3.Connection, rows: list[Entry]) -> None:
    with connection:
        connection.execute("BEGIN")
        connection.executemany(INSERT, rows)


class Stopwatch:
    """Wraps a journal's `run`, and records how long each piece of work held the writer, in seconds."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.longest = 0.0
        self._run = journal.run
        journal.run = self.run  # type: ignore[method-assign]

    async def run(self, work: Callable[[SqlConnection], T]) -> T:
        """Run the work."""

        def timed(connection: SqlConnection) -> T:
            start = time.perf_counter()
            try:
                return work(connection)
            finally:
                self.longest = max(self.longest, time.perf_counter() - start)

        return await self._run(timed)


async def other_writes(folder: Path, rows: int) -> None:
    """The longest time for which a purge, a rewrite and an import hold the writer."""
    found: list[tuple[str, str, float, float]] = []
    async with open_journal(folder, "bench") as journal:
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "rewrite": lambda: journal.rewrite(1, lambda each: each._replace(outcome=b"")),
            "purge": lambda: journal.purge(1, START + rows * 1_000),
        }
        for name, work in writes.items():
            watch = Stopwatch(journal)
            start = time.perf_counter()
            await work()
            taken = time.perf_counter() - start
            found.append((name, f"{rows:,}", taken, watch.longest * 1e3))
        with closing(schema.connect(folder)) as connection:
            content = list_contents.stage_content(connection, 1, "list", now=START)
            supply = (ListEntry(f"{number:x}") for number in range(rows))
            steps, start = [time.perf_counter()], time.perf_counter()
            steps += [
                time.perf_counter() for _ in list_contents.fill_content(connection, content, supply)
            ]
        longest = max(b - a for a, b in pairwise(steps))
        sequence = journal.last_sequence() + 1
        change = entry(sequence)._replace(kind=Kind.CHANGE)
        await journal.append(change, contents=(Addition("list", (ListEntry("old"),)),))
        swap = time.perf_counter()
        await journal.append(
            change._replace(sequence=sequence + 1), contents=(Replacement("list", content),)
        )
        end = time.perf_counter()
        found.append(("import", f"{rows:,}", steps[-1] - start, longest * 1e3))
        found.append(("swap of the import", f"{rows:,}", end - swap, (end - swap) * 1e3))
    show(
        "Other writes, a step at a time between two commits",
        ["", "entries", "s", "longest step ms"],
        found,
    )


async def measure(rows: int) -> None:
    """Run all measurements."""
    await group_commit()
    commits()
    with fresh_folder() as folder:
        sizes = [10**power for power in range(4, 9) if 10**power <= rows]
        await growth(folder, sizes)
        await other_writes(folder, min(sizes[-1], 200_000))
    with fresh_folder() as folder:
        fill(folder, 1, rows)
        indexes(folder)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(rows))


if __name__ == "__main__":
    main()
