"""What does it cost to erase a person, in a long history and in a short one?

    python -m tollkeeper.bench.erasure [PAYMENTS]

The history of `rebuild`, and a tenth of it, each with the windows of its rule. The index finds a
person's entries; without it, every entry is searched for the name. CPU is that of all threads,
including the checkpoint of the write-ahead log.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

from tollkeeper.bench.rebuild import configure, entries, run_in_process, store
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.index_file import remove_index

PERSONS = 20
PERSONS_WITHOUT = 2
MOST = 2.0
WORTH = 10.0


class Erasures(NamedTuple):
    """The number of the persons' payments; processor and wall seconds of one erasure."""

    payments: int
    cpu: float
    wall: float


class ErasureTimes(NamedTuple):
    indexed: Erasures
    without: Erasures


async def erase(engine: Engine, users: range) -> Erasures:
    cpu, wall, payments = process_time(), perf_counter(), 0
    for user in users:
        erased = await erase_user(engine, 1, "bench", f"u-{user}")
        payments += erased.payments
    took = process_time() - cpu, perf_counter() - wall
    return Erasures(payments, took[0] / len(users), took[1] / len(users))


async def erase_in(folder: Path) -> ErasureTimes:
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    async with open_engine(folder, "bench") as engine:
        await rebuild(engine, lambda _share: None)
        indexed = await erase(engine, range(PERSONS))
        remove_index(folder)
        return ErasureTimes(indexed, await erase(engine, range(PERSONS, PERSONS + PERSONS_WITHOUT)))


def measure(payments: int) -> ErasureTimes:
    with TemporaryDirectory(prefix="toll-erasure-") as name:
        folder = Path(name)
        asyncio.run(configure(folder))
        # Seven in ten have an update.
        store(folder, islice(entries(payments), payments * 17 // 10))
        return run_in_process(partial(erase_in, folder))


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    few, many = measure(most // 10), measure(most)
    show(
        "One person's erasure",
        ["stored payments, and where to look", "CPU ms", "wall ms", "of payments"],
        [
            [f"{size:,}, {lookup}", each.cpu * 1e3, each.wall * 1e3, each.payments / persons]
            for size, seen in ((most // 10, few), (most, many))
            for lookup, each, persons in (
                ("by the index", seen.indexed, PERSONS),
                ("without one", seen.without, PERSONS_WITHOUT),
            )
        ],
    )
    size_text = f"{most:,} stored payments"
    show_targets(
        [
            Target(f"{size_text} beside {most // 10:,}", many.indexed.cpu / few.indexed.cpu, MOST),
            Target(
                f"{size_text}, without an index beside one",
                many.without.cpu / many.indexed.cpu,
                at_least=WORTH,
            ),
        ]
    )


if __name__ == "__main__":
    main()
