"""Does a lookup, or one more entry, cost more in a list of 1,000,000 entries than in one of 10?

    python -m tollkeeper.bench.lists [--entries 1000000]

Prints microseconds and, more important, their ratio; then how fast contents are read and their
size; then how long payments and the write lock wait while a running service's list is replaced.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench.background import repeating
from tollkeeper.bench.servers import ACCOUNT, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import Contents, add_entries, build_contents
from tollkeeper.engine.lists.csv_file import read_csv, write_csv
from tollkeeper.engine.lists.entries import index_key
from tollkeeper.engine.lists.imports import import_entries
from tollkeeper.engine.lists.spec import ColumnType, ListSpec, Spec, TableSpec, lookup_of
from tollkeeper.engine.lists.values import show_network
from tollkeeper.grammar.program import Value

FEW = 10
LOOKUPS = 50_000
HOT = 500
ROUNDS = 5
ADDED = 2_000
COLUMNS = '["BR","debit"]'
COUNTRY_AND_FUNDING: dict[str, ColumnType] = {
    "country": "string",
    "funding": ("credit", "debit", "prepaid"),
}
IPV4 = 0xFFFF << 32
PAUSE_S = 0.002
QUIET_S = 5.0
GATE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
"""
PAYMENT = {
    "payment": {
        "type": "purchase",
        "currency": "EUR",
        "amount": 9.5,
        "method": {"type": "card"},
        "merchant": {"id": "m"},
        "user": {"id": "u"},
        "analyze": {"bot_behaviour": True, "rule": {"name": "gate"}},
    }
}


def network(number: int) -> str:
    """Return an IPv4 network of one of ten prefix lengths: a lookup probes each length that occurs."""
    length = 14 + number % 10 * 2
    address = (number * 2_654_435_761) % 2**32
    spare = 32 - length
    return show_network(IPV4 | address >> spare << spare, 96 + length)


KINDS: dict[str, tuple[Spec, Callable[[int], str], str | None]] = {
    "strings": (ListSpec("string"), lambda n: f"customer-{n}", None),
    "numbers": (ListSpec("number"), lambda n: f"{n / 4:.2f}", None),
    "networks": (ListSpec("ip"), network, None),
    "table by value": (TableSpec("value", COUNTRY_AND_FUNDING), lambda n: f"{n:08}", COLUMNS),
    "table by prefix": (
        TableSpec("prefix", COUNTRY_AND_FUNDING),
        lambda n: f"{n:08}"[: 4 + n % 5],
        COLUMNS,
    ),
    "table by network": (TableSpec("network", COUNTRY_AND_FUNDING), network, COLUMNS),
}


def entries(kind: str, count: int) -> Iterator[ListEntry]:
    _, value, columns = KINDS[kind]
    return (ListEntry(value(number), columns) for number in range(count))


def keys(kind: str, count: int, distinct: int) -> list[Value]:
    """Return lookups that succeed, of so many different entries, in random order."""
    spec, value, _ = KINDS[kind]
    chosen = random.Random(7).sample(range(count), min(count, distinct))
    found = [index_key(spec, value(number)) for number in chosen]
    if lookup_of(spec) == "network":
        found = [int(key) >> 8 for key in found]
    return (found * (LOOKUPS // len(found)))[:LOOKUPS]


def lookup_time(contents: Contents, wanted: list[Value]) -> float:
    """Return the seconds per lookup, the best of the rounds."""
    look = contents.contains if isinstance(contents.spec, ListSpec) else contents.find
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        for key in wanted:
            look(key, 0)
        best = min(best, perf_counter() - start)
    return best / len(wanted)


def put_times(contents: Contents, kind: str) -> tuple[float, float]:
    """Return the seconds to add one entry: the mean, and the maximum."""
    times = []
    for entry in list(entries(kind, ADDED)):
        start = perf_counter()
        contents = add_entries(contents, (entry,))
        times.append(perf_counter() - start)
    return sum(times) / len(times), max(times)


def memory() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(kind: str, count: int) -> list[Cell]:
    few = build_contents(KINDS[kind][0], entries(kind, FEW))
    gc.collect()
    before, start = memory(), perf_counter()
    many = build_contents(KINDS[kind][0], entries(kind, count))
    took, size = perf_counter() - start, memory() - before
    few_time = lookup_time(few, keys(kind, FEW, FEW))
    hot_time = lookup_time(many, keys(kind, count, HOT))
    cold_time = lookup_time(many, keys(kind, count, LOOKUPS))
    few_put, _ = put_times(few, kind)
    many_put, longest = put_times(many, kind)
    return [
        kind,
        *(each * 1e6 for each in (few_time, hot_time, cold_time)),
        hot_time / few_time,
        cold_time / few_time,
        few_put * 1e6,
        many_put * 1e6,
        many_put / few_put,
        longest * 1e3,
        count / took / 1e3,
        size / count,
    ]


def measure_csv(kind: str, count: int) -> list[Cell]:
    spec = KINDS[kind][0]
    text = io.StringIO()
    start = perf_counter()
    write_csv(text, spec, entries(kind, count))
    written = perf_counter() - start
    start = perf_counter()
    done = import_entries(read_csv(io.BytesIO(text.getvalue().encode()), spec), lambda _: None)
    took = perf_counter() - start
    return [kind, done.count / took / 1e3, count / written / 1e3]


def milliseconds(seconds: list[float]) -> list[float]:
    """Return the median, p99 and the maximum in milliseconds."""
    found = sorted(seconds)
    parts = (found[len(found) // 2], found[len(found) * 99 // 100], found[-1])
    return [1e3 * part for part in parts]


def pay(client: httpx.Client) -> float:
    start = perf_counter()
    client.post("/v1/payments", json=PAYMENT).raise_for_status()
    return perf_counter() - start


def take_lock(folder: Path) -> float:
    """Return how long another process's write waits for the lock."""
    with closing(sqlite3.connect(folder / "tollkeeper.db", timeout=0, isolation_level=None)) as it:
        start = perf_counter()
        while True:
            try:
                it.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                sleep(0.0002)
            else:
                took = perf_counter() - start
                it.execute("ROLLBACK")
                return took


def measure_import(count: int) -> list[list[Cell]]:
    """Replace a list that a rule reads, twice, while payments come in one after another."""
    rows: list[list[Cell]] = []
    with TemporaryDirectory() as name:
        folder, rule, file = Path(name) / "data", Path(name) / "gate.rule", Path(name) / "new.csv"
        key = new_key(folder, "payments")
        rule.write_text(GATE)
        toll(folder, "publish", str(rule), "--account", ACCOUNT)
        with serving(folder, key) as server, httpx.Client(base_url=server.url) as client:
            client.headers["authorization"] = f"Bearer {key}"

            def phase(label: str, work: Callable[[], object]) -> None:
                with (
                    repeating(lambda: pay(client), PAUSE_S) as payments,
                    repeating(lambda: take_lock(folder), PAUSE_S) as lock,
                ):
                    start = perf_counter()
                    work()
                    took = perf_counter() - start
                rows.append([label, took, *milliseconds(payments), *milliseconds(lock)])

            phase("no import", lambda: sleep(QUIET_S))
            for round_ in ("first", "again"):
                lines = (f"{round_}-{number}\n" for number in range(count))
                file.write_text("value\n" + "".join(lines))
                command = ("lists", "import", "blocked", str(file), "--account", ACCOUNT)
                phase(f"import, {round_}", partial(toll, folder, *command))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    count = parser.parse_args().entries
    show(
        f"{FEW} and {count:,} entries: µs for a lookup and to add one, loaded in 1000/s; hot are the"
        f" same {HOT} again and again, cold {LOOKUPS:,} different ones, mostly not in a cache",
        [
            "",
            "few",
            "hot",
            "cold",
            "hot ÷ few",
            "cold ÷ few",
            "add: few",
            "many",
            "÷",
            "worst ms",
            "load",
            "bytes each",
        ],
        [measure(kind, count) for kind in KINDS],
    )
    show(
        "Lines of CSV, 1000/s",
        ["", "read and checked", "written"],
        [measure_csv(kind, count) for kind in ("strings", "table by network")],
    )
    show(
        f"Importing {count:,} entries into a running service's list: ms that each payment took, and"
        " that another process waited for the write lock",
        ["", "seconds", "payment", "p99", "max", "lock", "p99", "max"],
        measure_import(count),
    )


if __name__ == "__main__":
    main()
