"""What does a follower use for each payment that it follows, and where?

    python -m tollkeeper.bench.following [--payments 20000] [--step 360] [--server URL]

An owner decides payments of 1.6 KB in a temporary PostgreSQL database, with the shipped scorecard and
a rule or without; a follower counts so many in each step, and writes its first-seen times after every
twelfth, as it does every 5 s at 900 payments a second. Both run in one process, one after the other.
The figures are µs of its processor time per payment, of all threads, without the first fifth; reading
and decoding are measured by themselves, and the rest of a step is counting.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from shutil import copy
from tempfile import TemporaryDirectory
from typing import TypeVar

import uvloop

from tollkeeper.api.http.serve import SERVICE_COLLECTS_AT
from tollkeeper.bench.create import create
from tollkeeper.bench.payments import body
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.tables import show
from tollkeeper.bench.ways import furnish
from tollkeeper.engine.filling import records_in
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.following import Following, begin_to_follow, catch_up
from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.postgres.journal import PostgresJournal, follow_database
from tollkeeper.engine.journal.reads import replay_entries, stretch_of
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.labels.payment_state import past_environments
from tollkeeper.engine.open import fill_windows, open_engine, open_on
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import StoredRecords

TRAFFIC = {"the scorecard": "no analysis", "scorecard and rule": "shipped"}
AT_ONCE = 64
WRITTEN_EVERY = 12
"""The steps between two writes of first-seen times."""

T = TypeVar("T")


async def pay(owner: Engine, active: ActivePrograms, random: Random, count: int) -> None:
    """Decide so many payments, and wait until a follower may read them."""
    waiting = iter(range(count))

    async def client() -> None:
        for _ in waiting:
            payment = read_creation(body(random), arrived := now(), active.limits)
            assert isinstance(payment, Payment)
            await create(owner, active, payment, arrived)

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    assert isinstance(owner.journal, PostgresJournal)
    await owner.journal.renew()


@asynccontextmanager
async def following(url: str, owner: Engine, folder: Path) -> AsyncIterator[Following]:
    folder.mkdir()
    copy(owner.folder / KEY_FILE, folder)
    async with (
        follow_database(url) as journal,
        open_on(journal, Database(url, folder)) as engine,
    ):
        found = await begin_to_follow(engine, journal)
        await fill_windows(engine, lambda _share: None)
        yield found


def read(connection: SqlConnection, after: int, up_to: int) -> list[Entry]:
    kinds = (Kind.PAYMENT, Kind.UPDATE)
    return [
        each for part in replay_entries(connection, None, 0, after, up_to, kinds) for each in part
    ]


def decode(connection: SqlConnection, entries: list[Entry], after: int, engine: Engine) -> None:
    ((account, active),) = engine.active.items()
    environments = past_environments(engine, account).at
    stored = StoredRecords(active.account, active.plans(), environments, lambda _id: None)
    list(records_in(stored, stretch_of(connection, account, after, entries), engine.damage))


async def measure(
    url: str, folder: Path, traffic: str, payments: int, step: int
) -> dict[str, float]:
    """µs per payment, by part."""
    used: defaultdict[str, float] = defaultdict(float)
    counted = 0

    async def timed(part: str, work: Callable[[], Awaitable[T]]) -> T:
        begun = time.process_time()
        found = await work()
        used[part] += time.process_time() - begun
        return found

    async with open_engine(Database(url, folder / "owner"), "bench") as owner:
        await furnish(owner, traffic)
        (active,) = owner.active.values()
        random = Random(3)
        async with following(url, owner, folder / "follower") as followed:
            engine, journal = followed.engine, followed.journal
            for turn in range(payments // step):
                if turn == payments // step // 5:
                    used.clear()
                    counted = 0
                    gc.collect()
                await pay(owner, active, random, step)
                up_to, after = (await journal.standing()).safe, followed.counted
                entries = await timed(
                    "read", partial(journal.query, partial(read, after=after, up_to=up_to))
                )
                decoded = partial(decode, entries=entries, after=after, engine=engine)
                await timed("decode", partial(journal.query, decoded))
                await timed("step", partial(catch_up, followed, up_to))
                counted += step
                if turn % WRITTEN_EVERY == 0:
                    await timed("ages", partial(engine.seen_times.write, journal.flush))
    return {part: 1e6 * used[part] / counted for part in ("read", "decode", "step", "ages")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=20_000)
    parser.add_argument("--step", type=int, default=360)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    given = parser.parse_args()
    gc.set_threshold(*SERVICE_COLLECTS_AT)
    rows = []
    for name, traffic in TRAFFIC.items():
        with (
            TemporaryDirectory(prefix="toll-following-") as folder,
            own_database(given.server) as url,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            us = runner.run(measure(url, Path(folder), traffic, given.payments, given.step))
        counting = us["step"] - us["read"] - us["decode"]
        parts = (us["read"], us["decode"], counting, us["ages"], us["step"] + us["ages"])
        rows.append((name, *(f"{each:.1f}" for each in parts)))
    show(
        f"µs of a follower's CPU a payment, {given.step} a step",
        ("with", "reading", "decoding", "counting", "writing first-seen times", "in all"),
        rows,
    )


if __name__ == "__main__":
    main()
