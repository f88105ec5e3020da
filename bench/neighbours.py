"""Can one account at its worst delay another account's payments?

    python -m tollkeeper.bench.neighbours [--seconds 8]

Account B sends payments at a steady rate, alone and while account A, from 4 threads with a key
each, edits a list, publishes versions of a rule of 100 conditions, or reads figures, as often as
its limits allow; its burst allowance is used up first. Prints B's p50 and p99 in milliseconds, in
turns, and what matters: the ratio of each to B alone in the same run.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench.servers import ACCOUNT, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show

THREADS = 4
PACE_S = 0.01
AT_ONCE_S = 8
"""After this many seconds A's burst allowance is used up."""
CONDITIONS = 100
ROUNDS = 3
ENTRIES = [{"value": f"customer-{number}"} for number in range(500)]
RULE = """rule worst
  list blocked: string
  let busy = count(payments by user.id over 30d)
  condition many when busy > {limit} then deny
""" + "".join(
    f"  condition c{number} when user.id matches /{number}x+/ and amount > {number} then deny\n"
    for number in range(CONDITIONS)
)
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


def edit_lists(client: httpx.Client, number: int) -> httpx.Response:
    return client.put("/v1/lists/blocked/entries", json={"entries": ENTRIES[number % 400 :][:100]})


def publish_versions(client: httpx.Client, number: int) -> httpx.Response:
    text = RULE.format(limit=number % 1000)
    headers = {"content-type": "text/plain"}
    return client.post("/v1/rules/worst/versions?publish=true", content=text, headers=headers)


def read_figures(client: httpx.Client, _number: int) -> httpx.Response:
    return client.get("/v1/figures")


WORST: dict[str, Callable[[httpx.Client, int], httpx.Response]] = {
    "list edits": edit_lists,
    "publishing": publish_versions,
    "figures": read_figures,
}


@contextmanager
def worst_neighbour(url: str, keys: list[str], name: str) -> Iterator[None]:
    """Run account A at its worst in a process of its own while the context lasts.

    The process has the lowest priority, since in reality it would run on another machine.
    """
    context = get_context("spawn")
    done = context.Event()
    process = context.Process(target=go_on, args=(url, keys, name, done))
    process.start()
    try:
        sleep(AT_ONCE_S)
        yield
    finally:
        done.set()
        process.join()


def go_on(url: str, keys: list[str], name: str, done: Event) -> None:
    """Repeat one thing, in a thread for each key."""
    os.nice(19)

    def repeat(key: str) -> None:
        with client_of(url, key) as client:
            number = 0
            while not done.is_set():
                number += 1
                answer = WORST[name](client, number)
                if wait := answer.headers.get("retry-after"):
                    sleep(int(wait))

    threads = [threading.Thread(target=repeat, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def client_of(url: str, key: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=60)


def waited(url: str, key: str, seconds: float) -> list[float]:
    """Return the milliseconds of each of B's payments, sorted."""
    found = []
    with client_of(url, key) as client:
        end = perf_counter() + seconds
        while (started := perf_counter()) < end:
            client.post("/v1/payments", json=PAYMENT).raise_for_status()
            found.append((perf_counter() - started) * 1000)
            sleep(PACE_S)
    return sorted(found)


def measure(folder: Path, seconds: float) -> list[list[Cell]]:
    a = new_key(folder, "admin")
    another = ("keys", "create", "--account", ACCOUNT, "--scope", "admin")
    keys = [a, *(toll(folder, *another).strip() for _ in range(THREADS - 1))]
    toll(folder, "accounts", "create", "neighbour")
    b = toll(folder, "keys", "create", "--account", "neighbour").strip()
    rows: list[list[Cell]] = []
    with serving(folder, a) as server:
        with client_of(server.url, a) as client:
            publish_versions(client, 0)
        waited(server.url, b, 1)
        for name in WORST:
            alone: list[float] = []
            together: list[float] = []
            for _ in range(ROUNDS):
                alone += waited(server.url, b, seconds / ROUNDS)
                with worst_neighbour(server.url, keys, name):
                    together += waited(server.url, b, seconds / ROUNDS)
            p99 = [sorted(each)[int(len(each) * 0.99)] for each in (alone, together)]
            p50 = [median(each) for each in (alone, together)]
            rows.append([name, *p50, *p99, p50[1] / p50[0], p99[1] / p99[0]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    with TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        rows = measure(Path(folder) / "data", options.seconds)
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
