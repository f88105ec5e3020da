"""Does anything grow under sustained load: memory, open files, threads, CPU, latency?

    python -m tollkeeper.bench.soak [--minutes 10]

`wrk` pays at half the service's capacity over 32 connections. Four other clients read payments,
update them, send invalid ones, and request what doesn't exist. The scorecard and the rule read no
history, so that nothing should grow but the journal's file; bench.growth measures history. The
first of ten parts is a warm-up and not compared.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import NamedTuple
from urllib.parse import urlsplit

from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import LoadResult, load, pause_for
from tollkeeper.bench.payments import body
from tollkeeper.bench.servers import Resources, Server, resources_of, serving
from tollkeeper.bench.tables import Target, show, show_targets

PARTS = 10
CLIENTS = 4
PAUSE_S = 0.02
SETTLING_S = 0.5


class Part(NamedTuple):
    """`answered` counts all requests so far, `other_requests` those besides the load in this part."""

    answered: int
    load: LoadResult
    other_requests: int
    held: Resources

    @property
    def cpu_each(self) -> float:
        """µs of CPU per request, of either kind."""
        return self.load.cpu / (self.load.requests + self.other_requests) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    seconds = max(2, round(parser.parse_args().minutes * 60 / PARTS))
    with TemporaryDirectory(prefix="toll-bench-") as place:
        folder = Path(place, "data")
        key = furnish(folder, "plain")
        with serving(folder, key) as server:
            parts = soaked(server, seconds)
    show(
        f"Parts of {seconds} s",
        ["requests so far", "MiB held", "open files", "threads", "CPU µs each", "p50 ms", "p99 ms"],
        [
            [
                f"{part.answered:,}",
                part.held.memory / 2**20,
                part.held.files,
                part.held.threads,
                part.cpu_each,
                part.load.p50,
                part.load.p99,
            ]
            for part in parts
        ],
    )
    _, second, *_, last = parts
    show_targets(
        [
            Target(
                "memory at the end ÷ at first", last.held.memory / second.held.memory, at_most=1.2
            ),
            Target("open files more", last.held.files - second.held.files, at_most=2),
            Target("threads more", last.held.threads - second.held.threads, at_most=0),
            Target("CPU at the end ÷ at first", last.cpu_each / second.cpu_each, at_most=1.25),
        ]
    )


def soaked(server: Server, seconds: int) -> list[Part]:
    pause = pause_for(load(server, 3).rate / 2)
    parts: list[Part] = []
    for number in range(PARTS):
        over = Event()
        with ThreadPoolExecutor(CLIENTS) as clients:
            seeds = range(CLIENTS * number, CLIENTS * (number + 1))
            asking = [clients.submit(ask, server, seed, over) for seed in seeds]
            measured = load(server, seconds, pause_ms=pause)
            over.set()
        other_requests = sum(each.result() for each in asking)
        time.sleep(SETTLING_S)
        before = parts[-1].answered if parts else 0
        answered = before + measured.requests + other_requests
        parts.append(Part(answered, measured, other_requests, resources_of(server.process.pid)))
    return parts


def ask(server: Server, seed: int, over: Event) -> int:
    """Send everything other than accepted payments, repeatedly; return the number of requests."""
    chance, requests = random.Random(seed), 0
    address = urlsplit(server.url).netloc
    headers = {"authorization": f"Bearer {server.key}"}
    with closing(http.client.HTTPConnection(address, timeout=60)) as client:

        def answer(method: str, path: str, sent: bytes = b"", status: int = 200) -> bytes:
            client.request(method, path, sent, headers)
            found = client.getresponse()
            content = found.read()
            assert found.status == status, (found.status, content)
            return content

        while not over.wait(PAUSE_S):
            sent = body(chance)
            made = json.loads(answer("POST", "/v1/payments", sent, 201))["payment"]["id"]
            answer("PATCH", f"/v1/payments/{made}", b'{"payment": {"status": "failed"}}')
            answer("GET", f"/v1/payments/{made}")
            answer("GET", f"/v1/payments/{made}/explanation")
            answer("GET", "/v1/payments/none", status=404)
            answer("POST", "/v1/payments", sent[:-40], 422)
            answer("GET", "/health/ready")
            requests += 7
    return requests


if __name__ == "__main__":
    main()
