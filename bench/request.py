"""What does a payment cost from its decoding to its answer, without HTTP?

    python -m tollkeeper.bench.request [--payments 4000] [--rounds 5] [--at-once 32]

`create` processes payments as the API does, several at once, on a real journal, with one durable
commit for all that wait. The event loop's thread and the writing thread are measured separately.
Then the parts are run one by one over the same payments; the rest is the loop's own. The figures
are µs of processor time, the least of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import msgspec
import uvloop

from tollkeeper.api.http.serve import SERVICE_COLLECTS_AT
from tollkeeper.bench.create import create
from tollkeeper.bench.http import LEAN_RULE, LEAN_SCORECARD
from tollkeeper.bench.payments import payment
from tollkeeper.bench.tables import show
from tollkeeper.engine.decide import decision_reads
from tollkeeper.engine.facts.facts import Facts, derive, record
from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.journal.entries import Kind as EntryKind
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.programs.active import ActivePrograms, choose_programs
from tollkeeper.engine.programs.decider import decide
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.verbs import Verb
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.velocity.contract import Record, State


@dataclass(frozen=True)
class Traffic:
    """The active files by name, and whether payments come with ids of their own."""

    files: dict[str, str]
    sends_ids: bool = False


LEAN = {"bot_behaviour": LEAN_SCORECARD, "web_checkout": LEAN_RULE}
TRAFFIC = {
    "no analysis": Traffic({}),
    "3 windows": Traffic(LEAN),
    "3 windows, ids sent": Traffic(LEAN, sends_ids=True),
    "shipped": Traffic({"web_checkout": (SHIPPED / "web_checkout.rule").read_text()}),
}


def body(random: Random, traffic: Traffic) -> bytes:
    sent = payment(random)
    if traffic.sends_ids:
        sent["id"] = str(UUID(int=random.getrandbits(128), version=4))
    if not traffic.files:
        del sent["analyze"]
    return msgspec.json.encode({"payment": sent})


@dataclass
class PaymentCost:
    """µs per payment."""

    loop: float
    writer: float
    parts: dict[str, float]


def read_all(bodies: Sequence[bytes], active: ActivePrograms) -> list[tuple[Payment, int]]:
    found = []
    for each in bodies:
        arrived = now()
        payment = read_creation(each, arrived, active.limits)
        assert isinstance(payment, Payment)
        found.append((payment, arrived))
    return found


def writer_seconds() -> float:
    """Return the processor time of the threads that write journals."""
    threads = [each.ident for each in threading.enumerate() if each.name == "journal"]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(each)) for each in threads if each)


async def whole(
    engine: Engine, active: ActivePrograms, payments: Sequence[tuple[Payment, int]], at_once: int
) -> tuple[float, float]:
    """Return µs per payment of the loop's thread and of the writer's."""

    begun, written = time.thread_time(), writer_seconds()
    for start in range(0, len(payments), at_once):
        async with asyncio.TaskGroup() as group:
            for payment, arrived in payments[start : start + at_once]:
                group.create_task(create(engine, active, payment, arrived))
    count = len(payments) / 1e6
    return (time.thread_time() - begun) / count, (writer_seconds() - written) / count


async def idle(count: int, at_once: int) -> float:
    """Return µs per task that only waits once: the loop's own cost."""

    async def wait() -> None:
        made = loop.create_future()
        waiting.append(made)
        await made

    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []
    begun = time.thread_time()
    for _ in range(0, count, at_once):
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(wait())
            await asyncio.sleep(0)
            for each in waiting:
                each.set_result(None)
            waiting.clear()
    return (time.thread_time() - begun) / count * 1e6


class Stopwatch:
    """Sums the time of parts, as µs for each of `count` payments."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: dict[str, float] = {}

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        begun = time.thread_time()
        found = work()
        self.parts[name] = (time.thread_time() - begun) / self.count * 1e6
        return found


def finish(coroutine: Any) -> Any:
    """Return the result of a coroutine that doesn't suspend."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it has suspended")


async def by_parts(
    engine: Engine, active: ActivePrograms, payments: Sequence[tuple[Payment, int]], at_once: int
) -> dict[str, float]:
    watch = Stopwatch(len(payments))
    windows, journal = engine.windows, engine.journal
    account, thresholds = active.account.number, active.account.settings.thresholds
    watch.part(
        "exists",
        lambda: [finish(journal.exists(account, EntryKind.PAYMENT, p.id)) for p, _ in payments],
    )
    facts: list[Facts] = watch.part(
        "derive", lambda: [derive(p, arrived, engine.clients) for p, arrived in payments]
    )
    programs = watch.part("choose", lambda: [choose_programs(active, p, 0) for p, _ in payments])
    reads = watch.part(
        "keys to read by",
        lambda: [
            decision_reads(chosen, f, active.environment)
            for chosen, f in zip(programs, facts, strict=True)
        ],
    )
    observed = watch.part(
        "observe",
        lambda: [
            finish(
                windows.observe(
                    Record(account, f.payment.id, f.timestamp, f.arrived, State(f)), others, own
                )
            )
            for f, (own, others) in zip(facts, reads, strict=True)
        ],
    )
    decisions = watch.part(
        "decide",
        lambda: [
            decide(chosen, f, seen.values, active.environment, thresholds, lost=seen.lost)
            for chosen, f, seen in zip(programs, facts, observed, strict=True)
        ],
    )
    settled = watch.part(
        "settle",
        lambda: [
            finish(windows.settle(seen, decision))
            for seen, decision in zip(observed, decisions, strict=True)
        ],
    )
    entries = watch.part(
        "encode",
        lambda: [
            Entry(
                sequence=seen.sequence,
                account=account,
                kind=EntryKind.PAYMENT,
                id=f.payment.id,
                arrived=f.arrived,
                time=f.timestamp,
                body=encode_stored(record(f)),
                outcome=encode_stored(decision),
            )
            for f, seen, decision in zip(facts, settled, decisions, strict=True)
        ],
    )
    begun = time.thread_time()
    for start in range(0, len(entries), at_once):
        for each in [journal.append(entry) for entry in entries[start : start + at_once]]:
            await each
    watch.parts["append"] = (time.thread_time() - begun) / len(entries) * 1e6
    return watch.parts


async def measure(traffic: Traffic, options: argparse.Namespace) -> PaymentCost:
    with TemporaryDirectory(prefix="toll-request-") as name:
        async with open_engine(Path(name), "bench") as engine:
            verbs: list[Verb] = [CreateAccount("shop")]
            for stem, text in traffic.files.items():
                kind: ProgramKind = "scorecard" if stem == "bot_behaviour" else "rule"
                verbs.append(Store("shop", kind, stem, text, activate=True))
            for verb in verbs:
                await verb.perform(engine, "bench", lambda _share: None)
            await rebuild(engine, lambda _share: None)
            active = engine.active[1]
            random = Random(4)
            totals, parts = [], []
            for _ in range(options.rounds):
                bodies = [body(random, traffic) for _ in range(2 * options.payments)]
                payments = read_all(bodies, active)
                gc.collect()
                first, second = payments[: options.payments], payments[options.payments :]
                totals.append(await whole(engine, active, first, options.at_once))
                gc.collect()
                parts.append(await by_parts(engine, active, second, options.at_once))
            least = {part: min(each[part] for each in parts) for part in parts[0]}
            least["the loop alone"] = await idle(options.payments, options.at_once)
            loop, writer = (min(column) for column in zip(*totals, strict=True))
            return PaymentCost(loop, writer, least)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*SERVICE_COLLECTS_AT)
    found = {}
    for name, traffic in TRAFFIC.items():
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found[name] = runner.run(measure(traffic, options))
    parts = next(iter(found.values())).parts
    rows = [
        ("**both threads**", [each.loop + each.writer for each in found.values()]),
        ("the loop's", [each.loop for each in found.values()]),
        ("the writer's", [each.writer for each in found.values()]),
        *((part, [each.parts[part] for each in found.values()]) for part in parts),
    ]
    title = f"µs of CPU a payment, {options.at_once} at once"
    show(title, ["", *found], [(name, *(round(each, 1) for each in row)) for name, row in rows])


if __name__ == "__main__":
    main()
