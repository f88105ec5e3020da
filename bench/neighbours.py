"""Does what one account does at its worst hold up another account's payments?

    python -m tollkeeper.bench.neighbours [--seconds 8]

Account B sends payments at a steady pace, alone and while account A edits a list from 4 threads,
stores and publishes versions, reads figures, and sends more than it may. Prints B's p50 and p99 in
milliseconds, in turns, and what counts: the ratio of each to B alone in the same run.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench.servers import Server, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show

THREADS = 4
PACE_S = 0.01
ROUNDS = 3
ENTRIES = [{"value": f"customer-{number}"} for number in range(500)]
RULE = """rule worst
  list blocked: string
  let busy = count(payments by user.id over 30d)
  condition many when busy > {limit} then deny
"""
PAYMENT = {
    "payment": {
        "type": "purchase",
        "currency": "EUR",
        "amount": 9.5,
        "method": {"type": "card"},
        "merchant": {"id": "m"},
        "user": {"id": "u"},
        "analyze": {"bot_behaviour": True},
    }
}


def edit_lists(client: httpx.Client, number: int) -> None:
    client.put("/v1/lists/blocked/entries", json={"entries": ENTRIES[number % 400 :][:100]})


def publish_versions(client: httpx.Client, number: int) -> None:
    text = RULE.format(limit=number % 1000)
    headers = {"content-type": "text/plain"}
    client.post("/v1/rules/worst/versions?publish=true", content=text, headers=headers)


def read_figures(client: httpx.Client, _number: int) -> None:
    client.get("/v1/figures")


WORST: dict[str, Callable[[httpx.Client, int], None]] = {
    "list edits": edit_lists,
    "publishing": publish_versions,
    "figures": read_figures,
}


@contextmanager
def beside(
    server: Server, key: str, act: Callable[[httpx.Client, int], None] | None
) -> Iterator[None]:
    """Account A at it from `THREADS` threads, until the block ends."""
    done = threading.Event()

    def go_on() -> None:
        with client_of(server, key) as client:
            number = 0
            while act is not None and not done.is_set():
                number += 1
                act(client, number)

    threads = [threading.Thread(target=go_on) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def client_of(server: Server, key: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def waited(server: Server, key: str, seconds: float) -> list[float]:
    """Milliseconds that each of B's payments took, in order of their size."""
    found = []
    with client_of(server, key) as client:
        end = perf_counter() + seconds
        while (started := perf_counter()) < end:
            client.post("/v1/payments", json=PAYMENT).raise_for_status()
            found.append((perf_counter() - started) * 1000)
            sleep(PACE_S)
    return sorted(found)


def measure(folder: Path, seconds: float) -> list[list[Cell]]:
    a = new_key(folder, "admin")
    toll(folder, "accounts", "create", "neighbour")
    b = toll(folder, "keys", "create", "--account", "neighbour").strip()
    rows: list[list[Cell]] = []
    with serving(folder, a) as server:
        with client_of(server, a) as client:
            publish_versions(client, 0)
        waited(server, b, 1)
        for name, act in WORST.items():
            alone: list[float] = []
            together: list[float] = []
            for _ in range(ROUNDS):
                alone += waited(server, b, seconds / ROUNDS)
                with beside(server, a, act):
                    together += waited(server, b, seconds / ROUNDS)
            p99 = [sorted(each)[int(len(each) * 0.99)] for each in (alone, together)]
            p50 = [median(each) for each in (alone, together)]
            rows.append([name, *p50, *p99, p50[1] / p50[0], p99[1] / p99[0]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        rows = measure(Path(folder) / "data", asked.seconds)
        show(
            "Milliseconds of B's payments",
            [
                "A does",
                "B p50 alone",
                "beside A",
                "B p99 alone",
                "beside A",
                "p50 ratio",
                "p99 ratio",
            ],
            rows,
        )


if __name__ == "__main__":
    main()
