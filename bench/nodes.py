"""How long does nobody decide when the node that does ends, and what does a node in between cost?

    python -m tollkeeper.bench.nodes [--rounds 3] [--payments 100] [--seconds 3] [--server URL]

In each round three nodes share a database of their own on the server, and an embedded service runs
beside them. A client sends one payment of 1.6 KB after the other: in turns to the embedded service, to
the owner, and to a follower, which sends it on; each has an idempotency key, by which it may be sent on
twice. Then `wrk` sends 64 at once, in turns as well, and the processor's time of each part is taken
over the same seconds, with that of the process which keeps a service's index. Where all parts share a
few cores the rate says what they take together; each part's time says what it could do with a core of
its own. In the end the client goes on at a node that stays while the owner is told to end (SIGTERM), and
again while the next one is killed (SIGKILL): the longest that a payment waited is how long nobody
decided.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from shutil import copy
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import NamedTuple

import httpx
import psycopg

from tollkeeper.bench.load import load
from tollkeeper.bench.payments import body
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.servers import PATIENCE_S, Server, cpu_seconds, new_key, serving
from tollkeeper.bench.tables import show
from tollkeeper.engine.folder_key import KEY_FILE

NODES = 3
SCOPES = ("payments",)
AT_ONCE = 64
TURN = 10
"""So many payments go to one service before the next has its turn."""
BEFORE = 20
"""So many payments are answered before the owner is ended, and after it."""
_OWNER = "SELECT nodes.process FROM nodes JOIN shards ON owner = node"
_WHOLE = "SELECT count(*) FROM nodes JOIN shards ON place >= last_place WHERE is_whole"
_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
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


class AtOnce(NamedTuple):
    """64 payments at once at one service: how many a second, and µs of the processor for each of
    them in every process, by its name; those of the database are those of its connections."""

    rate: float
    cpu: dict[str, float]


def at_once(at: Server, nodes: Mapping[str, Server], url: str, seconds: float) -> AtOnce:
    """Some seconds of load on a service. Nodes and database run on this machine."""

    def used() -> dict[str, float]:
        return {name: cpu_seconds(node.process.pid) for name, node in nodes.items()}

    before, of_database = used(), backends(url)
    measured = load(at, seconds, connections=AT_ONCE)
    cpu = {name: after - before[name] for name, after in used().items()}
    cpu["database"] = sum(after - of_database.get(pid, 0) for pid, after in backends(url).items())
    assert not measured.refused, f"{measured.refused} refused"
    each = {name: 1e6 * spent / measured.requests for name, spent in cpu.items()}
    return AtOnce(measured.rate, each)


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


def backends(url: str) -> dict[int, float]:
    """Seconds of the processor of each connection to the database, by its process."""
    found = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for (pid,) in connection.execute(_BACKENDS):
            # One that has ended meanwhile has done little.
            with suppress(FileNotFoundError):
                found[pid] = cpu_seconds(pid)
    return found


class Round(NamedTuple):
    """ms of each payment and what 64 at once did, by service, and s that nobody decided."""

    waits: dict[str, list[float]]
    loads: dict[str, AtOnce]
    gaps: dict[signal.Signals, float]


def measure(server: str, folder: Path, count: int, seconds: float, random: Random) -> Round:
    key = new_key(folder / "embedded", *SCOPES)
    with (
        serving(folder / "embedded", key) as embedded,
        own_database(server) as url,
        cluster(url, folder) as nodes,
    ):
        owner = owner_of(url, nodes)
        served = {"embedded": embedded, "owner": owner, "follower": nodes[0]}
        named = {**served, "other follower": nodes[1]}
        waits = alternating(served, count, random)
        for each in served.values():
            load(each, 1, connections=AT_ONCE)
        loads = {name: at_once(each, named, url, seconds) for name, each in served.items()}
        gaps = {}
        for number, how in enumerate(ENDS):
            owner = owner if number == 0 else owner_of(url, nodes)
            wait_for_whole(url, NODES - number)
            gaps[how] = longest_wait(nodes[0], owner, how, random)
    return Round(waits, loads, gaps)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payments", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3)
    given = parser.parse_args()
    random, rounds = Random(1), list[Round]()
    for _ in range(given.rounds):
        with TemporaryDirectory(prefix="toll-bench-") as name:
            asked = (given.server, Path(name), given.payments, given.seconds)
            rounds.append(measure(*asked, random))
    show_waits(rounds)
    show_loads(rounds)
    show_gaps(rounds)


def show_waits(rounds: Sequence[Round]) -> None:
    waits = {name: [ms for each in rounds for ms in each.waits[name]] for name in rounds[0].waits}
    p50 = {name: median(each) for name, each in waits.items()}
    rows = [
        (name, len(waits[name]), f"{each:.2f}", f"{each / p50['embedded']:.2f}")
        for name, each in p50.items()
    ]
    show("One payment at a time", ("at", "payments", "p50 ms", "×"), rows)


def show_loads(rounds: Sequence[Round]) -> None:
    rows = []
    for name in rounds[0].loads:
        rate = median(each.loads[name].rate for each in rounds)
        beside = median(each.loads[name].rate / each.loads["embedded"].rate for each in rounds)
        cpu = {
            part: median(each.loads[name].cpu[part] for each in rounds)
            for part in rounds[0].loads[name].cpu
        }
        # What is not asked still looks around, and that is not the payment's.
        parts = [cpu[part] if _takes_part(part, name) else None for part in cpu]
        rows.append((name, f"{rate:,.0f}", f"{beside:.2f}", *parts))
    head = (f"{part}, CPU µs" for part in rounds[0].loads["embedded"].cpu)
    show(f"{AT_ONCE} at once", ("at", "payments/s", "×", *head), rows)


def _takes_part(part: str, at: str) -> bool:
    return (part == "embedded") == (at == "embedded")


def show_gaps(rounds: Sequence[Round]) -> None:
    rows = []
    for how, words in ENDS.items():
        gaps = [each.gaps[how] for each in rounds]
        rows.append((words, len(gaps), f"{median(gaps):.2f}", f"{max(gaps):.2f}"))
    show("Nobody decides", ("the owner is", "times", "median s", "longest s"), rows)


if __name__ == "__main__":
    main()
