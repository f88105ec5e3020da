"""What windows cost, beside a plain loop over dicts and deques in the same run.

    python -m bench.windows

Prints the tables of docs/sizing.md, in processor time. The plain loop keeps the same aggregates
for payments that come in order, and knows nothing of late ones, updates or withdrawals.
"""

from __future__ import annotations

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

from tollkeeper.engine.windows.contract import HOUR, Function, Record, SeriesPlan, State, Window
from tollkeeper.engine.windows.memory import MemoryWindows
from tollkeeper.engine.windows.moments import DiskMoments
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
    key: Callable[[Any, Any, Any], tuple[Any, ...] | None]
    values: Callable[[Any, Any, Any], Sequence[Any]]


def key_of(name: str) -> Callable[[Any, Any, Any], tuple[Any, ...]]:
    def key(p: Any, _d: Any, _v: Any) -> tuple[Any, ...]:
        return (getattr(p, name),)

    return key


def each_record(_p: Any, _d: Any, _v: Any) -> Sequence[Any]:
    return (True,)


def its_card(p: Any, _d: Any, _v: Any) -> Sequence[Any]:
    return (p.card,)


def its_amount(p: Any, _d: Any, _v: Any) -> Sequence[Any]:
    return (p.amount,)


KEYS = {name: key_of(name) for name in ("ip", "device", "card")}
VALUES: dict[str, tuple[Callable[[Any, Any, Any], Sequence[Any]], Type | None]] = {
    "count": (each_record, None),
    "distinct": (its_card, String()),
    "sum": (its_amount, Number(2)),
    "max": (its_amount, Number(2)),
}
SERIES_OF = {"count": "records", "distinct": "cards", "sum": "amounts", "max": "amounts"}


def window(by: str, function: Function, over: int) -> tuple[SeriesPlan, Window, str]:
    values, type_ = VALUES[function]
    digest = f"{SERIES_OF[function]} by {by}"
    plan = SeriesPlan(
        digest, None, by, over, False, False, type_ is not None, False, Compiled(KEYS[by], values)
    )
    return plan, Window(digest, function, over, type_), by


def payment(number: int, time: int, paid: Paid, arrived: int | None = None) -> Record:
    return Record(1, str(number), time, time if arrived is None else arrived, State(paid))


async def ready(windows: list[tuple[SeriesPlan, Window, str]]) -> MemoryWindows:
    made = MemoryWindows(cap=10**9)
    await made.seal(await made.add(1, [plan for plan, _, _ in windows]))
    return made


async def ours(records: Iterable[Record], windows: list[tuple[SeriesPlan, Window, str]]) -> float:
    made = await ready(windows)
    return await timed(made, records, windows)


async def timed(
    made: MemoryWindows, records: Iterable[Record], windows: list[tuple[SeriesPlan, Window, str]]
) -> float:
    """Seconds per payment."""
    readers = [(each, KEYS[by]) for _, each, by in windows]
    count = 0
    begun = process_time()
    for record in records:
        paid = record.state.payment
        await made.observe(record, [(each, key(paid, None, None)) for each, key in readers])
        count += 1
    return (process_time() - begun) / count


class Plain:
    """One aggregate over one window, by a deque per key."""

    def __init__(self, by: str, function: str, over: int) -> None:
        self.key, self.function, self.over = KEYS[by], function, over
        self.value = VALUES[function][0]
        self.deques: defaultdict[Any, deque[tuple[int, Any]]] = defaultdict(deque)
        self.states: defaultdict[Any, Any] = defaultdict(
            lambda: defaultdict(int) if function == "distinct" else 0
        )

    def observe(self, time: int, paid: Paid) -> Any:
        key = self.key(paid, None, None)
        value = self.value(paid, None, None)[0]
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
    """Seconds per payment."""
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


MIX: list[tuple[str, Function, int]] = [
    (by, function, over)
    for over in (HOUR, HOUR // 6, 24 * HOUR, HOUR // 60, 6 * HOUR, 2 * HOUR)
    for by in KEYS
    for function in ("count", "distinct", "sum")
]


async def by_windows() -> None:
    print("\n## Windows read per payment (10,000 keys)\n")
    print("| windows | µs per payment | µs per window | ratio to the plain loop |")
    print("|---|---|---|---|")
    records = traffic(20_000, 10_000)
    for count in (1, 10, 50):
        windows = [window(*each) for each in MIX[:count]]
        pairs = [(await ours(records, windows), plain(records, windows)) for _ in range(ROUNDS)]
        cost = median(pair[0] for pair in pairs)
        ratio = median(pair[0] / pair[1] for pair in pairs)
        print(f"| {count} | {cost * 1e6:.1f} | {cost * 1e6 / count:.2f} | {ratio:.2f} |")


async def by_keys() -> None:
    print("\n## Keys (3 windows: count, distinct, sum by card over 24 h)\n")
    print("| keys | µs per payment | ratio to the plain loop |")
    print("|---|---|---|")
    windows = [window("card", function, 24 * HOUR) for function in ("count", "distinct", "sum")]
    for keys in (10**3, 10**4, 10**5, 10**6):
        records = traffic(max(50_000, keys), keys, gap=SECOND // 100)
        cost, loop = await ours(records, windows), plain(records, windows)
        print(f"| {keys:,} | {cost * 1e6:.1f} | {cost / loop:.2f} |")


ORDERS: dict[str, Callable[[int, random.Random], int]] = {
    "in order": lambda _number, _chance: 0,
    "up to 5 s late": lambda _number, chance: chance.randrange(5 * SECOND),
    "now and 24 h ago in turn": lambda number, _chance: number % 2 * 24 * HOUR,
    "anywhere within 24 h": lambda _number, chance: chance.randrange(24 * HOUR),
}


async def by_events() -> None:
    print("\n## Events on one key, all inside a window of 24 h: µs per payment\n")
    print("| arrivals | aggregate | 1 | 100 | 1,000 | 10,000 |")
    print("|---|---|---|---|---|---|")
    functions: tuple[Function, ...] = ("count", "distinct", "sum", "max")
    for order, late in ORDERS.items():
        for function in functions:
            costs = [await attack(function, events, late) for events in (1, 100, 1_000, 10_000)]
            print(f"| {order} | {function} | {' | '.join(f'{cost * 1e6:.1f}' for cost in costs)} |")
    costs = [plain_attack(events) for events in (1, 100, 1_000, 10_000)]
    print(f"| in order | distinct, plain loop | {' | '.join(f'{c * 1e6:.1f}' for c in costs)} |")


def burst(
    events: int, late: Callable[[int, random.Random], int]
) -> tuple[list[Record], list[Record]]:
    """The key's events, spread over 24 h and the 24 before, and 1,000 payments after them."""
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
    function: Function, events: int, late: Callable[[int, random.Random], int]
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


async def memory() -> None:
    print("\n## Memory\n")
    print("| what | bytes |")
    print("|---|---|")
    count = 200_000
    for function in ("count", "sum", "distinct"):
        held = await held_by(function, count, lambda n: f"card-{n:08d}")
        print(f"| a key of its own, {function} | {held / count:.0f} |")
    for function in ("count", "sum", "distinct"):
        held = await held_by(function, count, lambda _: "one")
        print(f"| an event more on a key, {function} | {held / count:.1f} |")


async def held_by(function: Function, count: int, card: Callable[[int], str]) -> int:
    """Bytes that windows hold beyond the series' own, keys and new values included."""
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


async def ages() -> None:
    print("\n## Ages: 200,000 payments, each with a key of its own, then 20,000 that come back\n")
    print("| kept | µs per payment filled | µs per payment read |")
    print("|---|---|---|")
    records = [payment(n, START + n, Paid("ip", "d", f"card-{n:08d}", n)) for n in range(200_000)]
    again = random.Random(11).sample(records, 20_000)
    plan, _, by = window("card", "count", HOUR)
    plan = replace(plan, over=None, ages=True)
    read = Window(plan.digest, "age", None, None)
    with TemporaryDirectory() as folder:
        for kept in ("memory", "disk"):
            made = (
                MemoryWindows()
                if kept == "memory"
                else MemoryWindows(moments=lambda _account, _series: DiskMoments(Path(folder)))
            )
            fill = await made.add(1, [plan])
            begun = process_time()
            await made.fill(fill, records)
            took = (process_time() - begun) / len(records)
            await made.seal(fill)
            cost = await timed(made, again, [(plan, read, by)])
            print(f"| {kept} | {took * 1e6:.1f} | {cost * 1e6:.1f} |")


async def rebuild() -> None:
    print("\n## Rebuild: 1,000,000 payments, 100,000 keys each way\n")
    print("| series | seconds | payments per second |")
    print("|---|---|---|")
    records = traffic(1_000_000, 100_000)
    for count in (1, 3, 9):
        windows = [window(*each) for each in MIX[:count]]
        made = MemoryWindows(cap=10**9)
        fill = await made.add(1, [plan for plan, _, _ in windows])
        begun = process_time()
        for start in range(0, len(records), 10_000):
            await made.fill(fill, records[start : start + 10_000])
        await made.seal(fill)
        took = process_time() - begun
        print(f"| {count} | {took:.1f} | {len(records) / took:,.0f} |")


async def main() -> None:
    await by_windows()
    await by_keys()
    await by_events()
    await memory()
    await ages()
    await rebuild()


if __name__ == "__main__":
    asyncio.run(main())
