"""What do windows cost, compared with a plain loop over dicts and deques in the same run?

    python -m tollkeeper.bench.windows [--payments 1000000]

Prints the tables of docs/sizing.md, in processor time. The plain loop computes the same aggregates
for payments that come in order, without support for late ones, updates or withdrawals.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tracemalloc
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.velocity.contract import (
    Fill,
    Record,
    SeriesPlan,
    State,
    Window,
)
from tollkeeper.engine.velocity.first_seen_store import open_seen_times
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.program import AggregateFunction
from tollkeeper.grammar.types import Number, String, Type

SECOND = HOUR // 3600
START = 1_750_000_000_000_000
ROUNDS = 3


class Paid(NamedTuple):
    ip: str
    device: str
    card: str
    amount: int


@dataclass(frozen=True)
class Compiled:
    key: Callable[..., tuple[Any, ...] | None]
    values: Callable[..., Sequence[Any]]
    facts: frozenset[tuple[str, ...]] = frozenset()


def key_of(name: str) -> Callable[..., tuple[Any, ...]]:
    def key(p: Any, *_others: Any) -> tuple[Any, ...]:
        return (getattr(p, name),)

    return key


def each_record(_p: Any, *_others: Any) -> Sequence[Any]:
    return (True,)


def its_card(p: Any, *_others: Any) -> Sequence[Any]:
    return (p.card,)


def its_amount(p: Any, *_others: Any) -> Sequence[Any]:
    return (p.amount,)


KEYS = {name: key_of(name) for name in ("ip", "device", "card")}
VALUES: dict[str, tuple[Callable[..., Sequence[Any]], Type | None]] = {
    "count": (each_record, None),
    "distinct": (its_card, String()),
    "sum": (its_amount, Number(2)),
    "max": (its_amount, Number(2)),
}
SERIES_OF = {"count": "records", "distinct": "cards", "sum": "amounts", "max": "amounts"}


def window(by: str, function: AggregateFunction, over: int) -> tuple[SeriesPlan, Window, str]:
    values, type_ = VALUES[function]
    digest = f"{SERIES_OF[function]} by {by}"
    plan = SeriesPlan(
        digest,
        None,
        by,
        over,
        ages=False,
        decided=False,
        valued=type_ is not None,
        missing=False,
        compiled=Compiled(KEYS[by], values),
        distinct=(over,) if function == "distinct" else (),
    )
    return plan, Window(digest, function, over, type_), by


def payment(number: int, time: int, paid: Paid, arrived: int | None = None) -> Record:
    return Record(1, str(number), time, time if arrived is None else arrived, State(paid))


async def seal(made: Windows, fill: Fill) -> None:
    while not await made.seal(fill):
        pass


async def ready(windows: list[tuple[SeriesPlan, Window, str]]) -> Windows:
    made = Windows(cap=10**9)
    await seal(made, await made.add(1, [plan for plan, _, _ in windows]))
    return made


async def ours(records: Iterable[Record], windows: list[tuple[SeriesPlan, Window, str]]) -> float:
    made = await ready(windows)
    return await timed(made, records, windows)


async def timed(
    made: Windows, records: Iterable[Record], windows: list[tuple[SeriesPlan, Window, str]]
) -> float:
    """Return seconds per payment."""
    readers = [(each, KEYS[by]) for _, each, by in windows]
    count = 0
    begun = process_time()
    for record in records:
        paid = record.state.payment
        await made.observe(record, [(each, key(paid)) for each, key in readers])
        count += 1
    return (process_time() - begun) / count


class Plain:
    """One aggregate over one window, with a deque per key."""

    def __init__(self, by: str, function: str, over: int) -> None:
        self.key, self.function, self.over = KEYS[by], function, over
        self.value = VALUES[function][0]
        self.deques: defaultdict[Any, deque[tuple[int, Any]]] = defaultdict(deque)
        self.states: defaultdict[Any, Any] = defaultdict(
            lambda: defaultdict(int) if function == "distinct" else 0
        )

    def observe(self, time: int, paid: Paid) -> Any:
        key = self.key(paid)
        value = self.value(paid)[0]
        held = self.deques[key]
        held.append((time, value))
        if self.function == "distinct":
            counts = self.states[key]
            counts[value] += 1
            while held[0][0] <= time - self.over:
                old = held.popleft()[1]
                counts[old] -= 1
                if not counts[old]:
                    del counts[old]
            return len(counts)
        if self.function == "sum":
            self.states[key] += value
        while held[0][0] <= time - self.over:
            old = held.popleft()[1]
            if self.function == "sum":
                self.states[key] -= old
        if self.function == "max":
            return max(each for _, each in held)
        return self.states[key] if self.function == "sum" else len(held)


def plain(records: Iterable[Record], windows: list[tuple[SeriesPlan, Window, str]]) -> float:
    """Return seconds per payment."""
    loops = [Plain(by, each.function, each.over or 0) for _, each, by in windows]
    count = 0
    begun = process_time()
    for record in records:
        for loop in loops:
            loop.observe(record.time, record.state.payment)
        count += 1
    return (process_time() - begun) / count


def traffic(count: int, keys: int, gap: int = SECOND // 10) -> list[Record]:
    chance = random.Random(7)
    return [
        payment(
            number,
            START + number * gap,
            Paid(
                f"203.0.{chance.randrange(keys)}",
                f"device-{chance.randrange(keys)}",
                f"card-{chance.randrange(keys)}",
                chance.randrange(100_000),
            ),
        )
        for number in range(count)
    ]


MIX: list[tuple[str, AggregateFunction, int]] = [
    (by, function, over)
    for over in (HOUR, HOUR // 6, 24 * HOUR, HOUR // 60, 6 * HOUR, 2 * HOUR)
    for by in KEYS
    for function in ("count", "distinct", "sum")
]


async def by_windows() -> None:
    rows: list[list[Cell]] = []
    records = traffic(20_000, 10_000)
    for count in (1, 10, 50):
        windows = [window(*each) for each in MIX[:count]]
        pairs = [(await ours(records, windows), plain(records, windows)) for _ in range(ROUNDS)]
        cost = median(pair[0] for pair in pairs)
        ratio = median(pair[0] / pair[1] for pair in pairs)
        rows.append([str(count), cost * 1e6, cost * 1e6 / count, ratio])
    show(
        "Windows read per payment (10,000 keys)",
        ["windows", "µs per payment", "µs per window", "ratio to the plain loop"],
        rows,
    )


async def by_keys(most: int) -> None:
    rows: list[list[Cell]] = []
    windows = [window("card", function, 24 * HOUR) for function in ("count", "distinct", "sum")]
    for keys in (each for each in (10**3, 10**4, 10**5, 10**6) if each <= most):
        records = traffic(max(50_000, keys), keys, gap=SECOND // 100)
        cost, loop = await ours(records, windows), plain(records, windows)
        rows.append([f"{keys:,}", cost * 1e6, cost / loop])
    show(
        "Keys (3 windows: count, distinct, sum by card over 24 h)",
        ["keys", "µs per payment", "ratio to the plain loop"],
        rows,
    )


ORDERS: dict[str, Callable[[int, random.Random], int]] = {
    "in order": lambda _number, _chance: 0,
    "up to 5 s late": lambda _number, chance: chance.randrange(5 * SECOND),
    "now and 24 h ago in turn": lambda number, _chance: number % 2 * 24 * HOUR,
    "anywhere within 24 h": lambda _number, chance: chance.randrange(24 * HOUR),
}


async def by_events() -> None:
    rows: list[list[Cell]] = []
    functions: tuple[AggregateFunction, ...] = ("count", "distinct", "sum", "max")
    for order, late in ORDERS.items():
        for function in functions:
            costs = [await attack(function, events, late) for events in (1, 100, 1_000, 10_000)]
            rows.append([f"{order}, {function}", *(cost * 1e6 for cost in costs)])
    costs = [plain_attack(events) for events in (1, 100, 1_000, 10_000)]
    rows.append(["in order, distinct, plain loop", *(cost * 1e6 for cost in costs)])
    show(
        "Events on one key, all inside a window of 24 h: µs per payment",
        ["arrivals, aggregate", "1", "100", "1,000", "10,000"],
        rows,
    )


def burst(
    events: int, late: Callable[[int, random.Random], int]
) -> tuple[list[Record], list[Record]]:
    """Return the key's events, spread over 24 h and the 24 before, and 1,000 payments after them."""
    chance = random.Random(3)
    span = 48 * HOUR
    before = [
        payment(
            n,
            START + n * span // (2 * events),
            Paid("ip", "d", f"card-{chance.randrange(events)}", n),
        )
        for n in range(2 * events)
    ]
    after = []
    for n in range(1_000):
        now = START + span + n * SECOND
        paid = Paid("ip", "d", f"card-{chance.randrange(events)}", n)
        after.append(payment(n, now - late(n, chance), paid, now))
    return before, after


async def attack(
    function: AggregateFunction, events: int, late: Callable[[int, random.Random], int]
) -> float:
    windows = [window("ip", function, 24 * HOUR)]
    made = await ready(windows)
    before, after = burst(events, late)
    await timed(made, before, windows)
    return await timed(made, after, windows)


def plain_attack(events: int) -> float:
    before, after = burst(events, ORDERS["in order"])
    loop = Plain("ip", "distinct", 24 * HOUR)
    for record in before:
        loop.observe(record.time, record.state.payment)
    begun = process_time()
    for record in after:
        loop.observe(record.time, record.state.payment)
    return (process_time() - begun) / len(after)


async def hot_key(events: int) -> None:
    """Late payments in a large group, such as the key of an attack or a shop's own."""
    rows: list[list[Cell]] = []
    gap = 24 * HOUR // events
    late: dict[str, Callable[[random.Random], int]] = {
        "in order": lambda _chance: 0,
        "up to 100 ms late": lambda chance: chance.randrange(SECOND // 10),
        "anywhere within 24 h": lambda chance: chance.randrange(24 * HOUR),
    }
    functions: tuple[AggregateFunction, ...] = ("count", "distinct", "sum", "max")
    for function in functions:
        for order, lateness in late.items():
            chance = random.Random(3)
            windows = [window("ip", function, 24 * HOUR)]
            made = Windows(cap=10**9)
            fill = await made.add(1, [plan for plan, _, _ in windows])
            await made.fill(
                fill,
                (
                    payment(n, START + n * gap, Paid("ip", "d", f"card-{n % 100_000}", n % 7919))
                    for n in range(events)
                ),
            )
            await seal(made, fill)
            await made.read(1, START + events * gap, [(windows[0][1], ("ip",))])
            costs = []
            for n in range(2_000):
                now = START + (events + n) * gap
                paid = Paid("ip", "d", f"card-{chance.randrange(100_000)}", n)
                record = payment(n, now - lateness(chance), paid, now)
                costs.append(await timed(made, [record], windows) * 1e6)
            costs.sort()
            rows.append(
                [f"{function}, {order}", sum(costs) / len(costs), costs[len(costs) * 99 // 100]]
            )
    show(
        f"A hot key: {events:,} events in a window of 24 h",
        ["aggregate, arrivals", "µs per payment", "p99"],
        rows,
    )


async def memory() -> None:
    rows: list[list[Cell]] = []
    count = 200_000
    functions: tuple[AggregateFunction, ...] = ("count", "sum", "distinct")
    for function in functions:
        held = await held_by(function, count, lambda n: f"card-{n:08d}")
        rows.append([f"a key of its own, {function}", held / count])
    for function in functions:
        held = await held_by(function, count, lambda _: "one")
        rows.append([f"an event more on a key, {function}", held / count])
    show("Memory", ["what", "bytes"], rows)


async def held_by(function: AggregateFunction, count: int, card: Callable[[int], str]) -> int:
    """Return the bytes of windows besides the series' own, new keys and values included."""
    made = await ready([window("card", function, 24 * HOUR)])
    fill = await made.add(1, [window("card", function, 48 * HOUR)[0]])
    gc.collect()
    tracemalloc.start()
    await made.fill(
        fill, (payment(n, START + n, Paid("ip", "d", card(n), n * 7919)) for n in range(count))
    )
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


async def empty() -> Newest:
    """Return the newest entry of a journal that is empty."""
    return Newest()


async def ages(most: int) -> None:
    rows: list[list[Cell]] = []
    records = [
        payment(n, START + n, Paid("ip", "d", f"card-{n:08d}", n)) for n in range(most + 20_000)
    ]
    stored, new = records[:most], records[most:]
    back = random.Random(11).sample(range(len(stored)), len(new))
    again = [
        [
            payment(n, START + later + at, Paid("ip", "d", f"card-{n:08d}", n))
            for at, n in enumerate(back)
        ]
        for later in (2_000_000, 3_000_000)
    ]
    plan, _, by = window("card", "count", HOUR)
    plan = replace(plan, over=None, ages=True)
    read = Window(plan.digest, "age", None, None)
    with TemporaryDirectory() as folder:
        async with open_seen_times(Path(folder), 0, empty) as store:
            for place, made in (
                ("memory", Windows()),
                ("disk", Windows(seen_times=store.open)),
            ):
                fill = await made.add(1, [plan])
                begun = process_time()
                for start in range(0, len(stored), 20_000):
                    await made.fill(fill, stored[start : start + 20_000])
                    await store.spool_filled(1, fill.series)
                await store.write_filled(1, fill.series, 0)
                took = (process_time() - begun) / len(stored)
                await seal(made, fill)
                store.end_filling(1, fill.series, fill.up_to)
                costs = []
                for records_read in (new, *again):
                    costs.append(await timed(made, records_read, [(plan, read, by)]))
                    await store.write(_written)
                rows.append([place, took * 1e6, *(cost * 1e6 for cost in costs)])
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    show(
        f"Ages: {most:,} payments, each with a key of its own, then 20,000 that read `age`;"
        f" {size / most:.0f} bytes a moment on disk",
        ["kept", "µs per payment filled", "a key never seen", "a key that comes back", "and again"],
        rows,
    )


async def _written() -> None:
    """Nothing: there is no journal to wait for."""


async def rebuild(most: int) -> None:
    rows: list[list[Cell]] = []
    records = traffic(most, 100_000)
    for count in (1, 3, 9):
        windows = [window(*each) for each in MIX[:count]]
        made = Windows(cap=10**9)
        fill = await made.add(1, [plan for plan, _, _ in windows])
        begun = process_time()
        for start in range(0, len(records), 10_000):
            await made.fill(fill, records[start : start + 10_000])
        await seal(made, fill)
        took = process_time() - begun
        rows.append([str(count), took, len(records) / took])
    show(
        f"Rebuild: {most:,} payments, 100,000 keys each way",
        ["series", "seconds", "payments per second"],
        rows,
    )


async def measure(most: int) -> None:
    await by_windows()
    await by_keys(most)
    await by_events()
    await hot_key(most)
    await memory()
    await ages(most)
    await rebuild(most)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=1_000_000)
    asyncio.run(measure(parser.parse_args().payments))


if __name__ == "__main__":
    main()
