"""Does anything grow with rules, lists and stored payments that shouldn't?

    python -m tollkeeper.bench.growth [--payments 1000000]

Each size has a data folder and a process of its own: it starts on the folder as `toll serve` does,
decides new payments 32 at a time, each on disk, and reads stored ones. CPU is that of both threads,
the least of the rounds. Stored payments are put into the journal directly, six a second until now,
of 200,000 users: those older than the longest window and its allowance are in no window.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvloop

from tollkeeper.api.http.serve import settle_memory
from tollkeeper.api.http.views import payment_view
from tollkeeper.bench.create import create
from tollkeeper.bench.history import fill
from tollkeeper.bench.payments import body
from tollkeeper.bench.rules import growing
from tollkeeper.bench.servers import ACCOUNT, resources_of
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.instants import now, to_microseconds
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.import_lists import import_file
from tollkeeper.engine.publish.verbs import Effect
from tollkeeper.engine.runtime import Engine

RULE = (SHIPPED / "web_checkout.rule").read_text()
CONDITIONS = (1, 100, 500)
RULES = (1, 100, 1_000)
ENTRIES = (10, 100_000, 1_000_000)
STORED = (10_000, 100_000, 1_000_000, 10_000_000)
PAYMENTS = 2_000
EXPLAINED = 5
ROUNDS = 3
AT_ONCE = 32
MOST = 1.5
MEMORY_GIB = 2
"""The most memory of a service with 1,000,000 payments in its windows."""


@dataclass(frozen=True)
class SizeFigures:
    """Seconds of a start, bytes of memory after it, payments a second on disk, µs of CPU to decide
    a payment, to read a stored one and to explain it, elements in the windows.
    """

    start: float
    memory: int
    rate: float
    cpu: float
    get: float
    explain: float
    elements: int


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=1e6)
    most = int(parser.parse_args().payments)
    conditions = grown(CONDITIONS, conditions_in)
    show_sizes("Conditions of a rule, none of them met", "conditions", conditions)
    rules = grown(RULES, rules_in)
    show_sizes("Rules in force, with one window each that all share", "rules", rules)
    lists = grown([n for n in ENTRIES if n <= most], entries_in)
    show_sizes("Entries of a list that the rule looks into", "entries", lists)
    payments = grown([n for n in STORED if n <= most], payments_in)
    show_sizes("Stored payments, the shipped scorecard and rule", "payments", payments)
    show_targets(targets(rules, lists, payments))


def targets(
    rules: dict[int, SizeFigures], lists: dict[int, SizeFigures], payments: dict[int, SizeFigures]
) -> Iterator[Target]:
    grown_by = {"rules": rules, "list entries": lists, "stored payments": payments}
    for name, sizes in grown_by.items():
        least, most = min(sizes), max(sizes)
        few, many = sizes[least], sizes[most]
        sizes_text = f"{most:,} {name} beside {least:,}"
        yield Target(f"CPU to decide a payment, {sizes_text}", many.cpu / few.cpu, at_most=MOST)
        yield Target(f"CPU to read one, {sizes_text}", many.get / few.get, at_most=MOST)
        yield Target(f"CPU to explain one, {sizes_text}", many.explain / few.explain, at_most=MOST)
    million = payments.get(1_000_000)
    if million is not None:
        gib = million.memory / 2**30
        yield Target("GiB held with 1,000,000 payments in the windows", gib, at_most=MEMORY_GIB)


def show_sizes(title: str, what: str, sizes: dict[int, SizeFigures]) -> None:
    show(
        title,
        [
            what,
            "start s",
            "MiB held",
            "on disk/s",
            "CPU µs each",
            "to read one",
            "to explain one",
            "elements",
        ],
        [
            [f"{size:,}", s.start, s.memory / 2**20, s.rate, s.cpu, s.get, s.explain, s.elements]
            for size, s in sizes.items()
        ],
    )


def grown(sizes: Sequence[int], furnish: Callable[[Path, int], None]) -> dict[int, SizeFigures]:
    """Return the measurements of a folder of each size."""
    found = {}
    for size in sizes:
        with TemporaryDirectory(prefix="toll-growth-") as name:
            furnish(Path(name), size)
            found[size] = measure_in_process(Path(name))
    return found


def conditions_in(folder: Path, number: int) -> None:
    text = growing(number).replace("rule growing", "rule web_checkout")
    publish(folder, {"web_checkout": text})


def rules_in(folder: Path, number: int) -> None:
    others = {f"other_{each}": one_of_many(each) for each in range(number - 1)}
    publish(folder, {"web_checkout": RULE, **others})


def one_of_many(number: int) -> str:
    return (
        f"rule other_{number}\n  let uses = count(payments by user.id over 24h)\n"
        f"  condition busy when uses > {number + 10} then deny\n"
    )


def entries_in(folder: Path, number: int) -> None:
    text = (
        "rule web_checkout\n  list blocked: string\n"
        "  condition blocked when user.id in @blocked then deny\n"
    )
    publish(folder, {"web_checkout": text})
    file = folder / "entries.csv"
    file.write_text("value\n" + "".join(f"x{each}\n" for each in range(number)))
    answer = import_file(folder, ACCOUNT, "blocked", file, {}, "bench", lambda _share: None)
    assert isinstance(answer, Effect), answer


def payments_in(folder: Path, number: int) -> None:
    publish(folder, {"web_checkout": RULE})
    fill(folder, number)


def publish(folder: Path, rules: Mapping[str, str]) -> None:
    """Make an account with these active rules, by name."""

    async def work() -> None:
        async with open_engine(folder, "bench") as engine:
            stores = [Store(ACCOUNT, "rule", *each, activate=True) for each in rules.items()]
            for verb in (CreateAccount(ACCOUNT), *stores):
                await verb.perform(engine, "bench", lambda _share: None)

    uvloop.run(work())


def measure_in_process(folder: Path) -> SizeFigures:
    """Return what a new process measures, without memory left from others."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(measure_folder, folder).result()


def measure_folder(folder: Path) -> SizeFigures:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(folder))


async def _measure(folder: Path) -> SizeFigures:
    begun = time.perf_counter()
    async with open_engine(folder, "bench") as engine:
        await rebuild(engine, lambda _share: None)
        start = time.perf_counter() - begun
        settle_memory()
        memory = resources_of(os.getpid()).memory
        rounds = [await decide_payments(engine) for _ in range(ROUNDS)]
        ids = await stored_ids(engine)
        shown = [await each_of(ids, reading(engine)) for _ in range(ROUNDS)]
        explained = [await each_of(ids[:EXPLAINED], explaining(engine)) for _ in range(ROUNDS)]
        elements = (await engine.windows.status(1)).entries
        return SizeFigures(
            start=start,
            memory=memory,
            rate=max(rate for rate, _ in rounds),
            cpu=min(cpu for _, cpu in rounds),
            get=min(shown),
            explain=min(explained),
            elements=elements,
        )


async def decide_payments(engine: Engine) -> tuple[float, float]:
    """Return new payments a second on disk, and µs of CPU for each."""
    active, random = engine.active[1], Random(now())
    payments = [read_creation(body(random), now()) for _ in range(PAYMENTS)]
    begun, cpu = time.perf_counter(), time.process_time()
    for first in range(0, PAYMENTS, AT_ONCE):
        async with asyncio.TaskGroup() as group:
            for payment in payments[first : first + AT_ONCE]:
                assert isinstance(payment, Payment)
                group.create_task(
                    create(engine, active, payment, to_microseconds(payment.timestamp))
                )
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return PAYMENTS / took, cpu / PAYMENTS * 1e6


async def stored_ids(engine: Engine) -> list[str]:
    """Return random ids of stored payments."""
    last, random = engine.journal.last_sequence(), Random(1)
    found = [await engine.journal.entry(random.randint(1, last)) for _ in range(PAYMENTS)]
    return [each.id for each in found if each is not None and each.kind == Kind.PAYMENT]


async def each_of(ids: Sequence[str], ask: Callable[[str], Awaitable[object]]) -> float:
    """Return µs of CPU for each."""
    begun = time.process_time()
    for each in ids:
        await ask(each)
    return (time.process_time() - begun) / len(ids) * 1e6


def reading(engine: Engine) -> Callable[[str], Awaitable[object]]:
    async def read(id_: str) -> object:
        return payment_view(await engine.journal.states(1, id_))

    return read


def explaining(engine: Engine) -> Callable[[str], Awaitable[object]]:
    async def read(id_: str) -> object:
        return await explain(engine.journal, engine.past_states, 1, id_)

    return read


if __name__ == "__main__":
    main()
