"""How long a start takes: the windows rebuilt from the journal, for so many stored payments.

    python -m bench.rebuild [PAYMENTS]

The ratio is to reading and decoding the same entries with nothing done to them, in the same run.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tollkeeper.engine.clients import Clients
from tollkeeper.engine.decide import encode
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.errands import CreateAccount, Store, do_errand
from tollkeeper.engine.facts import Recorded, derive, record
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal
from tollkeeper.engine.open import now, open_engine, rebuild
from tollkeeper.engine.payment import Payment
from tollkeeper.engine.validation import read_creation

RULE = """rule velocity
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  let uses = count(payments by method.card.fingerprint over 24h)
  let spent = sum(payments.amount by user.id, currency over 7d where status != "declined")
  condition many when cards > 5 or uses > 5 or spent > 5000 then deny
"""
BATCH = 2_000
HOUR = 3_600_000_000

out = Console()


def body(random: Random, number: int) -> dict[str, Any]:
    user = random.randrange(200_000)
    return {
        "payment": {
            "id": f"p-{number}",
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


async def store(folder: Path, payments: int) -> None:
    """A journal of payments, spread evenly over the last 20 hours."""
    random, clients = Random(1), Clients()
    start = now() - 20 * HOUR
    outcome = encode(Decision(action="allow", score=2))
    async with open_journal(folder, "bench") as journal:
        place = journal.last_place()
        for first in range(0, payments, BATCH):
            waiting = []
            for number in range(first, min(first + BATCH, payments)):
                arrived = start + number * (19 * HOUR // payments)
                payment = read_creation(msgspec.json.encode(body(random, number)), arrived)
                assert isinstance(payment, Payment)
                facts = derive(payment, arrived, clients)
                place += 1
                entry = Entry(
                    place, 1, Kind.PAYMENT, payment.id, arrived, arrived,
                    encode(record(facts)), outcome,
                )  # fmt: skip
                waiting.append(journal.append(entry))
                if len(waiting) >= 500:
                    await asyncio.gather(*waiting)
                    waiting.clear()
            await asyncio.gather(*waiting)


async def read_alone(folder: Path) -> float:
    """Seconds of reading and decoding every entry."""
    decode = msgspec.json.Decoder(Recorded).decode
    started = time.process_time()
    async with open_journal(folder, "bench") as journal:
        assert isinstance(journal, SqliteJournal)
        for batch in journal.replay(1, kinds=(Kind.PAYMENT,)):
            for entry in batch:
                decode(entry.body)
    return time.process_time() - started


async def start(folder: Path) -> tuple[float, float]:
    """Processor and wall seconds from opening the folder to whole windows."""
    cpu, wall = time.process_time(), time.perf_counter()
    async with open_engine(folder, "bench") as engine:
        await rebuild(engine, lambda _share: None)
        return time.process_time() - cpu, time.perf_counter() - wall


async def measure(payments: int) -> None:
    with TemporaryDirectory(prefix="toll-rebuild-") as name:
        folder = Path(name)
        async with open_engine(folder, "bench") as engine:
            for errand in (
                CreateAccount("shop"),
                Store("shop", "rule", "velocity", RULE, activate=True),
            ):
                await do_errand(engine, errand, "bench", lambda _share: None)
        await store(folder, payments)
        alone = await read_alone(folder)
        cpu, wall = await start(folder)
        table = Table(
            "payments", "read and decode, CPU s", "start, CPU s", "start, wall s", "ratio"
        )
        table.add_row(
            f"{payments:,}", f"{alone:.1f}", f"{cpu:.1f}", f"{wall:.1f}", f"{cpu / alone:.1f}"
        )
        out.print(table)


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
