"""What happens past the capacity, and with slow clients?

    python -m tollkeeper.bench.overload [--seconds 10]

`wrk` floods the service over more and more connections, each sending its next request as soon as it
has an answer; refusals are quick, so many connections request several times the capacity. Four
clients that were connected before pay 25 times a second each: the table has their latencies, for
accepted payments only. After the flood, recovery is over when a payment takes less than twice the
slowest at half the capacity. Memory is the process's afterwards; no rule reads history, which would
grow with accepted payments.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import random
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from urllib.parse import urlsplit

import numpy as np

from tollkeeper.api.http.settings import Settings
from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import CONNECTIONS, LoadResult, load, pause_for
from tollkeeper.bench.payments import body
from tollkeeper.bench.servers import Server, resources_of, serving
from tollkeeper.bench.tables import Target, show, show_targets

FLOODS = (256, 1_024, 2_000, 4_000)
FEW_WAITING = 64
PAYERS = 4
PAUSE_S = 0.04
STOPPED, DRIPPING = 300, 100
DRIP_S = 0.1


@dataclass
class Paid:
    """Milliseconds of accepted payments, and how many were refused with `Retry-After`, or failed
    otherwise.
    """

    accepted: list[float] = field(default_factory=list)
    refused: int = 0
    failed: int = 0

    def p(self, percent: float) -> float | None:
        return float(np.percentile(self.accepted, percent)) if self.accepted else None


@dataclass(frozen=True)
class Row:
    name: str
    load: LoadResult
    paid: Paid
    memory: int
    recovery: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    seconds = parser.parse_args().seconds
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * max(FLOODS))), hard))
    with TemporaryDirectory(prefix="toll-bench-") as place:
        folder = Path(place, "data")
        key = furnish(folder, "plain")
        with serving(folder, key) as server:
            load(server, 2)
            full = under(server, f"{CONNECTIONS} connections", seconds, CONNECTIONS)
            half = pause_for(full.load.rate / 2)
            calm = under(server, "half of that", seconds, CONNECTIONS, half)
            with dawdling(server):
                beside = under(server, "the same beside dawdlers", seconds, CONNECTIONS, half)
            floods = [
                flood(server, f"{count:,} connections", seconds, count, calm) for count in FLOODS
            ]
            after = under(server, "half of 32 again, afterwards", seconds, CONNECTIONS, half)
        with serving(folder, key, "--waiting", str(FEW_WAITING)) as server:
            name = f"1,024 connections, {FEW_WAITING} may wait"
            few = flood(server, name, seconds, 1_024, calm)
    show_rows([full, calm, beside, *floods, after, few], full.load.rate)
    show_targets(targets(full, calm, beside, floods, after))


def targets(full: Row, calm: Row, beside: Row, floods: list[Row], after: Row) -> Iterator[Target]:
    settings = Settings()
    bound = 1000 * (settings.connections + settings.waiting) / full.load.rate
    worst = max(each.paid.p(99) or 0 for each in floods)
    least = min(accepted(each.load) for each in floods)
    failed = sum(row.paid.failed for row in (full, calm, beside, *floods, after))
    yield Target(
        f"p99 of the accepted ÷ {bound:,.0f} ms for all that may wait", worst / bound, at_most=1
    )
    yield Target("accepted in the worst flood ÷ capacity", least / full.load.rate, at_least=0.5)
    yield Target("seconds to recover", max(each.recovery or 0 for each in floods), at_most=5)
    yield Target("p50 afterwards ÷ before", ratio(after, calm), at_most=2)
    yield Target("p50 beside dawdlers ÷ without", ratio(beside, calm), at_most=2)
    growth = max(each.memory for each in floods) / full.memory
    yield Target("memory in the floods ÷ before", growth, at_most=1.5)
    yield Target("answers neither 201 nor 503 with Retry-After", failed, at_most=0)


def ratio(row: Row, other: Row) -> float:
    return (row.paid.p(50) or 0) / (other.paid.p(50) or 1)


def accepted(measured: LoadResult) -> float:
    """Return payments a second."""
    return (measured.requests - measured.refused) / measured.seconds


def show_rows(rows: list[Row], capacity: float) -> None:
    show(
        "By connections that ask at once",
        [
            "",
            "asked ÷ capacity",
            "accepted/s",
            "refused %",
            "p50 ms",
            "p99 ms",
            "s to recover",
            "MiB held",
        ],
        [
            [
                row.name,
                row.load.rate / capacity,
                accepted(row.load),
                100 * row.load.refused / row.load.requests,
                row.paid.p(50),
                row.paid.p(99),
                row.recovery,
                row.memory / 2**20,
            ]
            for row in rows
        ],
    )


def flood(server: Server, name: str, seconds: int, connections: int, calm: Row) -> Row:
    row = under(server, name, seconds, connections)
    ended, quick = time.perf_counter(), 2 * max(calm.paid.accepted)
    chance, paid = random.Random(connections), Paid()
    with closing(client_of(server)) as client:
        while not paid.accepted or paid.accepted[-1] > quick:
            pay_once(client, server.key, body(chance), paid)
    return replace(row, recovery=time.perf_counter() - ended)


def under(server: Server, name: str, seconds: int, connections: int, pause_ms: int = 0) -> Row:
    """Return what the paying clients measure while `wrk` sends."""
    over, paid = Event(), Paid()
    with ThreadPoolExecutor(PAYERS) as payers:
        paying = [payers.submit(pay, server, number, over, paid) for number in range(PAYERS)]
        time.sleep(PAUSE_S)
        measured = load(server, seconds, connections=connections, pause_ms=pause_ms)
        over.set()
        for each in paying:
            each.result()
    return Row(name, measured, paid, resources_of(server.process.pid).memory)


def pay(server: Server, number: int, over: Event, paid: Paid) -> None:
    """Pay repeatedly over one connection, until it is over."""
    chance = random.Random(number)
    with closing(client_of(server)) as client:
        while not over.wait(PAUSE_S):
            pay_once(client, server.key, body(chance), paid)


def client_of(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)


def pay_once(client: http.client.HTTPConnection, key: str, sent: bytes, paid: Paid) -> None:
    begun = time.perf_counter()
    try:
        client.request("POST", "/v1/payments", sent, {"authorization": f"Bearer {key}"})
        answer = client.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        paid.failed += 1
        client.close()
        return
    if answer.status == HTTPStatus.CREATED:
        paid.accepted.append(1000 * (time.perf_counter() - begun))
    elif answer.status == HTTPStatus.SERVICE_UNAVAILABLE and answer.headers["retry-after"]:
        paid.refused += 1
    else:
        paid.failed += 1


@contextmanager
def dawdling(server: Server) -> Iterator[None]:
    """Clients that stop half-way through a payment, and others that send it byte by byte."""
    whole = request(server)
    half = len(whole) // 2
    over = Event()
    with ExitStack() as opened:
        connections = [opened.enter_context(connected(server)) for _ in range(STOPPED + DRIPPING)]
        for each in connections:
            each.sendall(whole[:half])
        dripping = Thread(target=drip, args=(connections[STOPPED:], whole[half:], over))
        dripping.start()
        try:
            yield
        finally:
            over.set()
            dripping.join()


def drip(connections: list[socket.socket], rest: bytes, over: Event) -> None:
    for position in itertools.count():
        if over.wait(DRIP_S) or position == len(rest):
            return
        for each in connections:
            each.sendall(rest[position : position + 1])


def request(server: Server) -> bytes:
    sent = body(random.Random(1))
    head = (
        f"POST /v1/payments HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {server.key}\r\n"
        f"content-length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent


def connected(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port))


if __name__ == "__main__":
    main()
