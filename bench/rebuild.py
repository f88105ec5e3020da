"""How long does a start take that rebuilds the windows from so many stored payments?

    python -m tollkeeper.bench.rebuild [PAYMENTS]

Seven in ten payments have an update a minute later, all in the last 20 hours, with the shipped
scorecard and a rule with three windows. A first start finds only the journal; one after an orderly
stop also finds the first-seen times and the snapshot of the windows. Then a tenth more comes in,
with a crash before more was written; the last start finds the first-seen times but no snapshot. The
ratios are to only reading the same entries and decoding what the series read of them, in the same
run.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from resource import getpagesize
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

import msgspec

from tollkeeper.bench.tables import show
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import Facts, amend, derive, record
from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.merge import merge
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.registry.environments import PastEnvironments
from tollkeeper.engine.stored_records import StoredRecords, encode_stored
from tollkeeper.engine.velocity.snapshot import FILE

RULE = """rule velocity
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  let uses = count(payments by method.card.fingerprint over 24h)
  let spent = sum(payments.amount by user.id, currency over 7d where status != "declined")
  condition many when cards > 5 or uses > 5 or spent > 5000 then deny
"""
UPDATE = b"""{"payment": {"status": "succeeded", "transactions": [
  {"id": "t-1", "status": "succeeded", "connector": {"id": "acquirer-1", "response_code": "00"}}
]}}"""
HOUR = 3_600_000_000
MINUTE = HOUR // 60

T = TypeVar("T")


def body(random: Random) -> dict[str, Any]:
    user = random.randrange(200_000)
    return {
        "payment": {
            "id": f"{random.getrandbits(128):032x}",
            "type": "purchase",
            "currency": "BRL",
            "amount": random.randrange(100, 50_000) / 100,
            "method": {
                "type": "credit_card",
                "card": {
                    "network": "visa",
                    "presence": "card_not_present",
                    "bin": f"4{user % 900:07}",
                    "last_four": f"{user % 10_000:04}",
                },
            },
            "device": {
                "ip_address": f"203.0.{user % 250}.{user % 200}",
                "headers": {
                    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"
                },
                "fingerprint": {"id": f"d-{user}", "provider": "basic"},
            },
            "user": {"id": f"u-{user}", "email": f"u{user}@shop.example"},
            "merchant": {"id": f"m-{user % 20}", "country": "BR"},
            "analyze": {"bot_behaviour": True},
        }
    }


def entries(payments: int) -> Iterator[Entry]:
    """Payments spread evenly over 19 hours, and their updates, without sequence numbers."""
    random, clients = Random(1), Clients()
    start, step = now() - 20 * HOUR, 19 * HOUR // payments
    outcome = encode_stored(Decision(action="allow", score=2, reads=(None,) * 28))
    waiting: deque[tuple[int, Facts]] = deque()
    for number in range(payments):
        arrived = start + number * step
        while waiting and waiting[0][0] <= arrived:
            yield updated(*waiting.popleft())
        payment = read_creation(msgspec.json.encode(body(random)), arrived)
        assert isinstance(payment, Payment)
        facts = derive(payment, arrived, clients)
        if random.random() < 0.7:
            waiting.append((arrived + MINUTE, facts))
        stored_body = encode_stored(record(facts))
        yield Entry(0, 1, Kind.PAYMENT, payment.id, arrived, arrived, stored_body, outcome)


def updated(at: int, facts: Facts) -> Entry:
    update = read_update(UPDATE, at)
    assert isinstance(update, Update)
    payment = merge(facts.payment, update, at)
    assert isinstance(payment, Payment)
    stored_body = encode_stored(record(amend(facts, payment)))
    return Entry(0, 1, Kind.UPDATE, payment.id, at, facts.timestamp, stored_body)


def store(folder: Path, coming: Iterable[Entry]) -> None:
    """Append entries to the journal, all at once."""
    with closing(schema.connect(folder)) as connection:
        (last,) = connection.execute("SELECT max(place) FROM journal").fetchone()
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (each._replace(sequence=last + 1 + number) for number, each in enumerate(coming)),
        )
        connection.execute("COMMIT")


async def read_alone(folder: Path) -> float:
    """Return the processor seconds to read every entry, and decode what the series read of it."""
    async with open_engine(folder, "bench") as engine:
        [account] = engine.state.accounts.values()
        plans = engine.active[account.number].plans()
        begun = process_time()
        environments = PastEnvironments(engine.journal, engine.past_states, account)
        stored = StoredRecords(account, plans, environments.at, lambda _id: None)
        for stretch in engine.journal.replay_latest(
            account.number, up_to=engine.journal.last_sequence(), kinds=stored.kinds
        ):
            for entry in stretch.fresh:
                stored.record(entry)
            for before, after in stretch.amended:
                stored.amended_record(before, after)
        return process_time() - begun


class Start(NamedTuple):
    """Processor and wall seconds until the windows are complete, MiB of memory, elements in
    windows.
    """

    cpu: float
    wall: float
    memory: int
    elements: int


async def start(folder: Path) -> Start:
    cpu, wall = process_time(), perf_counter()
    async with open_engine(folder, "bench") as engine:
        await rebuild(engine, lambda _share: None)
        took = process_time() - cpu, perf_counter() - wall
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize() >> 20
        return Start(*took, memory, (await engine.windows.status(1)).entries)


def run_in_process(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in a process of its own, so that memory is that of one start."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_run, work).result()


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(work())


async def configure(folder: Path) -> None:
    async with open_engine(folder, "bench") as engine:
        for verb in (
            CreateAccount("shop"),
            Store("shop", "rule", "velocity", RULE, activate=True),
        ):
            await verb.perform(engine, "bench", lambda _share: None)


def measure(payments: int) -> None:
    with TemporaryDirectory(prefix="toll-rebuild-") as name:
        folder = Path(name)
        asyncio.run(configure(folder))
        coming = entries(payments + payments // 10)
        # Seven in ten have an update.
        store(folder, islice(coming, payments * 17 // 10))
        reading = run_in_process(partial(read_alone, folder))
        starts = {
            "first start": run_in_process(partial(start, folder)),
            "after an orderly end": run_in_process(partial(start, folder)),
        }
        store(folder, coming)
        starts["after a crash, a tenth more"] = run_in_process(partial(start, folder))
        (folder / FILE).unlink()
        starts["without a snapshot"] = run_in_process(partial(start, folder))
        ages = (folder / "ages.db").stat().st_size / 1e6
        show(
            f"{payments:,} payments, and {ages:.0f} MB of ages on disk",
            ["", "CPU s", "wall s", "× reading alone", "elements", "MiB"],
            [
                ["reading and decoding alone", reading, None, 1.0, None, None],
                *(
                    (
                        kind,
                        took.cpu,
                        took.wall,
                        took.cpu / reading,
                        took.elements,
                        took.memory,
                    )
                    for kind, took in starts.items()
                ),
            ],
        )


def main() -> None:
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)


if __name__ == "__main__":
    main()
