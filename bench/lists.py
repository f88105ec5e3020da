"""Does a lookup, or one more entry, cost more in a list of 1,000,000 entries than in one of 10?

    python -m bench.lists [--entries 1000000]

Prints microseconds and, what counts, their ratio; then how fast contents are read and their size.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import resource
from collections.abc import Callable, Iterator
from time import perf_counter

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import Contents, HeldList, hold, put
from tollkeeper.engine.lists.csv_file import read_csv, write_csv
from tollkeeper.engine.lists.entries import index_key
from tollkeeper.engine.lists.imports import import_entries
from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec, lookup_of
from tollkeeper.engine.lists.values import show_network
from tollkeeper.grammar.program import Value

FEW = 10
LOOKUPS = 50_000
HOT = 500
ROUNDS = 5
ADDED = 2_000
COLUMNS = '["BR","debit"]'
COUNTRY_AND_FUNDING = {"country": "string", "funding": ("credit", "debit", "prepaid")}
IPV4 = 0xFFFF << 32


def network(number: int) -> str:
    """An IPv4 network of one of ten prefix lengths: a lookup probes each length that occurs."""
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
    """Lookups that find something, of so many different entries, in no order."""
    spec, value, _ = KINDS[kind]
    chosen = random.Random(7).sample(range(count), min(count, distinct))
    found = [index_key(spec, value(number)) for number in chosen]
    if lookup_of(spec) == "network":
        found = [int(key) >> 8 for key in found]
    return (found * (LOOKUPS // len(found)))[:LOOKUPS]


def lookup_time(contents: Contents, wanted: list[Value]) -> float:
    """Seconds a lookup, the best of the rounds."""
    look = contents.contains if isinstance(contents, HeldList) else contents.find
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        for key in wanted:
            look(key, 0)
        best = min(best, perf_counter() - start)
    return best / len(wanted)


def put_times(contents: Contents, kind: str) -> tuple[float, float]:
    """Seconds to add one entry: on average, and the longest."""
    times = []
    for entry in list(entries(kind, ADDED)):
        start = perf_counter()
        contents = put(contents, (entry,))
        times.append(perf_counter() - start)
    return sum(times) / len(times), max(times)


def memory() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(kind: str, count: int) -> None:
    few = hold(KINDS[kind][0], entries(kind, FEW))
    gc.collect()
    before, start = memory(), perf_counter()
    many = hold(KINDS[kind][0], entries(kind, count))
    took, size = perf_counter() - start, memory() - before
    few_time = lookup_time(few, keys(kind, FEW, FEW))
    hot_time = lookup_time(many, keys(kind, count, HOT))
    cold_time = lookup_time(many, keys(kind, count, LOOKUPS))
    few_put, _ = put_times(few, kind)
    many_put, longest = put_times(many, kind)
    print(
        f"{kind:17} {few_time * 1e6:6.2f} {hot_time * 1e6:6.2f} {cold_time * 1e6:6.2f}"
        f" {hot_time / few_time:6.2f} {cold_time / few_time:6.2f}"
        f" {few_put * 1e6:8.1f} {many_put * 1e6:6.1f} {many_put / few_put:6.2f}"
        f" {longest * 1e3:9.2f} {count / took / 1e3:6.0f} {size / count:6.0f}"
    )


def measure_csv(kind: str, count: int) -> None:
    spec = KINDS[kind][0]
    text = io.StringIO()
    start = perf_counter()
    write_csv(text, spec, entries(kind, count))
    written = perf_counter() - start
    start = perf_counter()
    done = import_entries(read_csv(io.BytesIO(text.getvalue().encode()), spec), lambda _: None)
    took = perf_counter() - start
    print(f"csv {kind:17} {done.count / took / 1e3:6.0f} {count / written / 1e3:6.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    count = parser.parse_args().entries
    print(f"{FEW} and {count} entries; µs a lookup, µs an entry added, load in 1000/s, bytes each")
    print("hot: the same 500 again and again; cold: 50,000 different ones, mostly not in a cache")
    print(
        f"{'':17} {'few':>6} {'hot':>6} {'cold':>6} {'ratio':>6} {'ratio':>6}"
        f" {'add: few':>8} {'many':>6} {'ratio':>6} {'worst ms':>9} {'load':>6} {'bytes':>6}"
    )
    for kind in KINDS:
        measure(kind, count)
    print("\nlines of CSV in 1000/s: read and checked, written")
    for kind in ("strings", "table by network"):
        measure_csv(kind, count)


if __name__ == "__main__":
    main()
