"""How long does nobody decide when the node that does ends, and what does a node in between cost?

    python -m tollkeeper.bench.nodes [--rounds 3] [--payments 100] [--server URL]

In each round three nodes share a database of their own on the server, and an embedded service runs
beside them. A client sends one payment of 1.6 KB after the other: in turns to the embedded service, to
the owner, and to a follower, which sends it on. Then it goes on at a node that stays while the owner
is told to end (SIGTERM), and again while the next one is killed (SIGKILL): the longest that a payment
waited is how long nobody decided. Each has an idempotency key, by which it may be sent on twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from shutil import copy
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread

import httpx
import psycopg

from tollkeeper.bench.payments import body
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.servers import PATIENCE_S, Server, new_key, serving
from tollkeeper.bench.tables import show
from tollkeeper.engine.folder_key import KEY_FILE

NODES = 3
SCOPES = ("payments",)
TURN = 10
"""So many payments go to one service before the next has its turn."""
BEFORE = 20
"""So many payments are answered before the owner is ended, and after it."""
_OWNER = "SELECT nodes.process FROM nodes JOIN shards ON owner = node"
_WHOLE = "SELECT count(*) FROM nodes JOIN shards ON place >= last_place WHERE is_whole"
ENDS = {signal.SIGTERM: "told to end", signal.SIGKILL: "killed"}


def pay(client: httpx.Client, random: Random) -> float:
    """ms until a payment was decided and kept."""
    key = {"idempotency-key": f"{random.getrandbits(128):032x}"}
    content, begun = body(random), time.perf_counter()
    answer = client.post("/v1/payments", content=content, headers=key)
    passed = time.perf_counter() - begun
    assert answer.status_code == 201, answer.text
    return 1000 * passed


def client_of(server: Server) -> httpx.Client:
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE_S)


def alternating(servers: dict[str, Server], count: int, random: Random) -> dict[str, list[float]]:
    """ms of so many payments at each service."""
    found: dict[str, list[float]] = {name: [] for name in servers}
    with ExitStack() as stack:
        clients = {name: stack.enter_context(client_of(each)) for name, each in servers.items()}
        for client in clients.values():
            pay(client, random)
        for _ in range(0, count, TURN):
            for name, client in clients.items():
                found[name] += [pay(client, random) for _ in range(TURN)]
    return found


def longest_wait(paid: Server, ended: Server, how: signal.Signals, random: Random) -> float:
    """s that a payment at one node waited at most, while another ends."""
    waits: list[float] = []
    begun, ending = Event(), Event()

    def go_on() -> None:
        with client_of(paid) as client:
            while not ending.is_set():
                waits.append(pay(client, random))
                if len(waits) == BEFORE:
                    begun.set()
            waits.extend(pay(client, random) for _ in range(BEFORE))

    paying = Thread(target=go_on)
    paying.start()
    begun.wait(PATIENCE_S)
    ended.process.send_signal(how)
    ended.process.wait(PATIENCE_S)
    ending.set()
    paying.join()
    return max(waits) / 1000


@contextmanager
def cluster(url: str, folder: Path) -> Iterator[list[Server]]:
    """Nodes on a database, all of them whole."""
    os.environ["TOLL_DATABASE"] = url
    try:
        key = new_key(folder / "0", *SCOPES)
        with ExitStack() as stack:
            nodes = []
            for number in range(NODES):
                (folder / str(number)).mkdir(exist_ok=True)
                if number:
                    copy(folder / "0" / KEY_FILE, folder / str(number))
                nodes.append(stack.enter_context(serving(folder / str(number), key)))
            wait_for_whole(url, NODES)
            yield nodes
    finally:
        del os.environ["TOLL_DATABASE"]


def wait_for_whole(url: str, count: int) -> None:
    """Until so many nodes could own the journal at once."""
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(_WHOLE).fetchall() != [(count,)]:
            time.sleep(0.05)


def owner_of(url: str, nodes: list[Server]) -> Server:
    """The node that decides; it is taken out of the list."""
    with psycopg.connect(url, autocommit=True) as connection:
        ((process,),) = connection.execute(_OWNER).fetchall()
    (found,) = [each for each in nodes if process.startswith(f"{each.process.pid} ")]
    nodes.remove(found)
    return found


def measure(
    server: str, folder: Path, count: int, random: Random
) -> tuple[dict[str, list[float]], dict[signal.Signals, float]]:
    """ms at each service, and s that nobody decided."""
    key = new_key(folder / "embedded", *SCOPES)
    with (
        serving(folder / "embedded", key) as embedded,
        own_database(server) as url,
        cluster(url, folder) as nodes,
    ):
        owner = owner_of(url, nodes)
        served = {"embedded": embedded, "owner": owner, "follower": nodes[0]}
        waits, gaps = alternating(served, count, random), {}
        for number, how in enumerate(ENDS):
            owner = owner if number == 0 else owner_of(url, nodes)
            wait_for_whole(url, NODES - number)
            gaps[how] = longest_wait(nodes[0], owner, how, random)
    return waits, gaps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payments", type=int, default=100)
    given = parser.parse_args()
    random, waits, gaps = Random(1), dict[str, list[float]](), dict[signal.Signals, list[float]]()
    for _ in range(given.rounds):
        with TemporaryDirectory(prefix="toll-bench-") as name:
            found, ended = measure(given.server, Path(name), given.payments, random)
        for service, each in found.items():
            waits.setdefault(service, []).extend(each)
        for how, seconds in ended.items():
            gaps.setdefault(how, []).append(seconds)
    p50 = {name: median(each) for name, each in waits.items()}
    rows = [
        (name, len(waits[name]), f"{each:.2f}", f"{each / p50['embedded']:.2f}")
        for name, each in p50.items()
    ]
    show("One payment at a time", ("at", "payments", "p50 ms", "×"), rows)
    ended_rows = [
        (ENDS[how], len(each), f"{median(each):.2f}", f"{max(each):.2f}")
        for how, each in gaps.items()
    ]
    show("Nobody decides", ("the owner is", "times", "median s", "longest s"), ended_rows)


if __name__ == "__main__":
    main()
