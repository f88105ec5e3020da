"""What does retention cost in PostgreSQL, and is the space it frees used again?

    python -m tollkeeper.bench.retention [--entries 200000] [--server URL]

A temporary database gets so many payments of 1.5 KB, with every five hundredth entry a
configuration change, which stays. Then the older half of the payments is removed, and as many are
added: a journal in its steady state should not grow by that. Seconds are wall time; processor time
is that of this process and of its connections.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from tollkeeper.bench.nodes import backends
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.tables import show
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.postgres.journal import open_database

ACCOUNT = 1
AT_ONCE = 256
SECOND = 1_000_000
BODY, OUTCOME = 1_000, 500
CHANGES = 500
"""Every so-manyth entry is a change."""
READS = 2_000
_SIZE = "SELECT pg_total_relation_size('journal')"


class RetentionFigures(NamedTuple):
    """µs of processor time for each entry appended, read by its id and purged; seconds of purging;
    bytes of the journal before, after the purge and a vacuum, and after as many new entries.
    """

    append: float
    read: float
    purge: float
    purge_s: float
    before: int
    after: int
    again: int


def entries(first: int, count: int) -> Iterator[Entry]:
    for place in range(first, first + count):
        kind = Kind.PAYMENT if place % CHANGES else Kind.CHANGE
        body, at = os.urandom(BODY), place * SECOND
        yield Entry(place, ACCOUNT, kind, f"p{place:012d}", at, at, body, os.urandom(OUTCOME))


async def append(journal: Journal, first: int, count: int) -> None:
    waiting: list[asyncio.Future[None]] = []
    for entry in entries(first, count):
        waiting.append(journal.append(entry))
        if len(waiting) == AT_ONCE:
            await asyncio.gather(*waiting)
            waiting = []
    await asyncio.gather(*waiting)


def size(url: str) -> int:
    """Return the journal's bytes after a vacuum."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM journal")
        ((found,),) = connection.execute(_SIZE).fetchall()
        return int(found)


async def measure(url: str, count: int) -> RetentionFigures:
    def used() -> float:
        return time.process_time() + sum(backends(url).values())

    async with open_database(url, "serve") as journal:
        begun = used()
        await append(journal, 1, count)
        appended = used() - begun
        before, begun = size(url), used()
        for place in range(1, count, max(1, count // READS)):
            await journal.states(ACCOUNT, f"p{place:012d}")
        read, begun, started = used() - begun, used(), time.perf_counter()
        removed = await journal.purge(ACCOUNT, count // 2 * SECOND)
        purged, seconds = used() - begun, time.perf_counter() - started
        after = size(url)
        await append(journal, count + 1, count // 2)
    return RetentionFigures(
        1e6 * appended / count,
        1e6 * read / READS,
        1e6 * purged / removed,
        seconds,
        before,
        after,
        size(url),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    given = parser.parse_args()
    with own_database(given.server) as url:
        found = asyncio.run(measure(url, given.entries))
    sizes = (f"{each / 1e6:.0f}" for each in (found.before, found.after, found.again))
    times = (f"{each:.1f}" for each in (found.append, found.read, found.purge, found.purge_s))
    head = ("append, CPU µs", "read, CPU µs", "purge, CPU µs", "purge, s")
    show(
        f"{given.entries:,} entries, of which the older half goes",
        (*head, "MB", "MB after", "MB after as many came"),
        [[*times, *sizes]],
    )


if __name__ == "__main__":
    main()
