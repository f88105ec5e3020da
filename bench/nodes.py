"""How long does nobody decide when a node ends, what does forwarding cost, what do two nodes carry?

    python -m tollkeeper.bench.nodes [--rounds 3] [--payments 100] [--seconds 3] [--server URL]

In each round three nodes share a temporary database on the server, and an embedded service runs
beside them. A client sends payments of 1.6 KB one at a time: alternately to the embedded service,
to the owner, and to a follower, which forwards them; each has an idempotency key, so that it may be
forwarded twice. Then `wrk` sends 64 at once, alternately as well, and the processor time of each
process is measured over the same seconds, including the one that keeps a service's index. Where all
processes share a few cores, the rate says what they need together; each process's time says what it
could do with a core of its own. Finally the client continues at a remaining node while the owner is
told to end (SIGTERM), and again while the next one is killed (SIGKILL): the longest wait of a
payment is how long nobody decided.

Last, one node decides for two accounts, and in turn with it two nodes for one shard each, with 64
payments at once at each node, of both accounts in turn, as a load balancer would send them. A node
decides in one process, on one core: that process's time per payment, over both accounts, says how
many payments a second the node can decide if it has a core for itself, and the index and the
database have others.

Where both nodes, the database, the indexes and `wrk` share two cores, each takes longer for the same work
than on a core of its own. So the parts of it are also measured one by one: an owner decides while its
only follower is stopped (SIGSTOP); the follower then follows what was decided, alone; and both are
measured with payments sent to the owner, and with payments sent to the follower, which forwards them:
the difference is forwarding. Of two nodes with a shard each, and clients that send to any node, each
decides half of the payments, follows the other half, and shares in forwarding half of all.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from shutil import copy
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, LiteralString, NamedTuple

import httpx
import psycopg

from tollkeeper.bench.load import LoadResult, load
from tollkeeper.bench.payments import body
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.servers import PATIENCE_S, Server, children, cpu_seconds, new_key, serving
from tollkeeper.bench.tables import show
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.postgres.shards import address_of_shard, open_shards

NODES = 3
SHARED = ("shop", "store")
"""The accounts of two shards."""
SHARED_TURNS = 3
"""How often in a round the one node and the two are measured."""
PARTS_TURNS = 3
"""How often in a round the parts of two nodes' work are measured."""
SCOPES = ("payments",)
AT_ONCE = 64
TURN = 10
"""The payments sent to one service before the next one's turn."""
BEFORE = 20
"""The payments answered before the owner is ended, and after it."""
_OWNER = "SELECT nodes.process FROM nodes JOIN shards ON owner = node"
_WHOLE = (
    "SELECT count(*) FROM nodes JOIN shards ON place >= last_place"
    " WHERE is_whole AND seen_at > clock_timestamp() - interval '5 seconds'"
)
_KEPT = "SELECT pg_database_size(current_database()), count(*) FROM journal WHERE kind = 1"
_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
ENDS = {signal.SIGTERM: "told to end", signal.SIGKILL: "killed"}


def pay(client: httpx.Client, random: Random) -> float:
    """Return ms until a payment was decided and stored."""
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
    """Return ms of so many payments at each service."""
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
    """64 payments at once at one service: the number a second, and µs of processor time per payment
    in every process, by its name; the database's are those of its connections.
    """

    rate: float
    cpu: dict[str, float]


def at_once(at: Server, nodes: Mapping[str, Server], url: str, seconds: float) -> AtOnce:
    """Some seconds of load on a service; nodes and database run on this machine."""

    def used() -> dict[str, float]:
        return {name: cpu_seconds(node.process.pid) for name, node in nodes.items()}

    before, of_database = used(), backends(url)
    measured = load(at, seconds, connections=AT_ONCE)
    cpu = {name: after - before[name] for name, after in used().items()}
    cpu["database"] = sum(after - of_database.get(pid, 0) for pid, after in backends(url).items())
    assert not measured.refused, f"{measured.refused} refused"
    each = {name: 1e6 * spent / measured.requests for name, spent in cpu.items()}
    return AtOnce(measured.rate, each)


class SharedLoad(NamedTuple):
    """Payments a second of all accounts, and µs of processor time per payment: of each node's own
    process, and of all nodes' index processes.
    """

    rate: float
    nodes: list[float]
    indexes: float


def shared_load(nodes: Sequence[Server], seconds: float) -> SharedLoad:
    """Some seconds of 64 at once at each node, which are of the accounts in turn: clients that wait for
    answers would otherwise send more to the account whose owner answers sooner."""

    def used() -> tuple[list[float], float]:
        each, indexes = zip(*map(cpu_of, nodes), strict=True)
        return list(each), sum(indexes)

    before, index_before = used()
    measured = ask_each(nodes, seconds)
    after, index_after = used()
    requests = sum(each.requests for each in measured)
    assert not any(each.refused for each in measured)
    return SharedLoad(
        sum(each.rate for each in measured),
        [1e6 * (b - a) / requests for a, b in zip(before, after, strict=True)],
        1e6 * (index_after - index_before) / requests,
    )


def ask_each(nodes: Sequence[Server], seconds: float) -> list[LoadResult]:
    """Send 64 at once to each node at the same time."""
    with ThreadPoolExecutor(len(nodes)) as asking:
        return list(asking.map(lambda node: load(node, seconds, connections=AT_ONCE), nodes))


@contextmanager
def sharing(server: str, folder: Path, count: int) -> Iterator[list[Server]]:
    """So many nodes with a shard each, and two accounts, whose keys every node is asked with."""
    with own_database(server) as url, ExitStack() as stack:
        open_shards(url, count)
        with in_database(url):
            keys = [new_key(folder / "0", *SCOPES, account=name) for name in SHARED]
            nodes = [stack.enter_context(node) for node in joining(folder, keys[0], count)]
        until_shared(url, count)
        yield [replace(node, key=" ".join(keys)) for node in nodes]


def shared_loads(server: str, folder: Path, seconds: float) -> list[tuple[SharedLoad, ...]]:
    """Loads of one node and of two, in turn, so that both meet the same machine."""
    with sharing(server, folder / "one", 1) as one, sharing(server, folder / "two", 2) as two:
        for nodes in (one, two):
            ask_each(nodes, 1)
        return [
            tuple(shared_load(nodes, seconds) for nodes in (one, two)) for _ in range(SHARED_TURNS)
        ]


class Parts(NamedTuple):
    """µs of the nodes' own processes per payment: to decide it, to follow it, and to forward it."""

    decided: float
    followed: float
    forwarded: float

    def of_two(self) -> float:
        """The µs of each of two nodes per payment of both."""
        return (self.decided + self.followed + self.forwarded / 2) / 2


def parts_of_work(server: str, folder: Path, seconds: float) -> list[Parts]:
    with own_database(server) as url, in_database(url), ExitStack() as stack:
        key = new_key(folder / "0", *SCOPES)
        nodes = [stack.enter_context(node) for node in joining(folder, key, 2)]
        wait_for_whole(url, 2)
        followers = [*nodes]
        owner = owner_of(url, followers)
        [follower] = followers
        load(owner, 1, connections=AT_ONCE)
        found = []
        for _ in range(PARTS_TURNS):
            decided, followed = decided_and_followed(owner, follower, url, seconds)
            both = own_cpu(owner, nodes, url, seconds)
            forwarded = own_cpu(follower, nodes, url, seconds) - both
            found.append(Parts(decided, followed, forwarded))
        return found


def decided_and_followed(
    owner: Server, follower: Server, url: str, seconds: float
) -> tuple[float, float]:
    """µs of the owner per payment while its follower is stopped, and then those of the follower."""
    wait_for_whole(url, 2)
    (before, _), (idle, _) = cpu_of(owner), cpu_of(follower)
    follower.process.send_signal(signal.SIGSTOP)
    try:
        measured = load(owner, seconds, connections=AT_ONCE)
        decided = cpu_of(owner)[0] - before
    finally:
        follower.process.send_signal(signal.SIGCONT)
    wait_for_whole(url, 2)
    followed = cpu_of(follower)[0] - idle
    return 1e6 * decided / measured.requests, 1e6 * followed / measured.requests


def own_cpu(at: Server, nodes: Sequence[Server], url: str, seconds: float) -> float:
    """µs of all nodes' own processes per payment sent to one, until it is followed."""
    wait_for_whole(url, len(nodes))
    before = sum(cpu_of(node)[0] for node in nodes)
    measured = load(at, seconds, connections=AT_ONCE)
    wait_for_whole(url, len(nodes))
    return 1e6 * (sum(cpu_of(node)[0] for node in nodes) - before) / measured.requests


def until_shared(url: str, count: int) -> None:
    """Wait until each of so many shards has a node of its own, and every node could own every
    shard.
    """
    addresses = [address_of_shard(url, number) for number in range(1, count + 1)]
    while len(set(owners(addresses))) < count:
        time.sleep(0.2)
    while count_whole(addresses) != [count] * count:
        time.sleep(0.05)


def owners(addresses: list[str]) -> list[str]:
    """Return the process of each shard's owner, without the shards that nobody owns."""
    return _in_each(addresses, _OWNER)


def count_whole(addresses: list[str]) -> list[int]:
    """Return for each shard how many nodes could own it at once."""
    return _in_each(addresses, _WHOLE)


def _in_each(addresses: list[str], query: LiteralString) -> list[Any]:
    """Return the values of a query's only column, shard after shard."""
    found = []
    for each in addresses:
        with psycopg.connect(each, autocommit=True) as connection:
            found += [value for (value,) in connection.execute(query)]
    return found


def cpu_of(server: Server) -> tuple[float, float]:
    """Return the processor seconds of the node's own process, and of its indexes' processes."""
    pid = server.process.pid
    index = sum(map(cpu_seconds, children(pid)))
    return cpu_seconds(pid) - index, index


def longest_wait(paid: Server, ended: Server, how: signal.Signals, random: Random) -> float:
    """Return the longest wait (s) of a payment at one node while another ends."""
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
def in_database(url: str) -> Iterator[None]:
    """Make the database the default journal of every service and command."""
    os.environ["TOLL_DATABASE"] = url
    try:
        yield
    finally:
        del os.environ["TOLL_DATABASE"]


def joining(folder: Path, key: str, count: int) -> Iterator[AbstractContextManager[Server]]:
    """Yield nodes; each must be started before the next is requested."""
    for number in range(count):
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        if number:
            copy(folder / "0" / KEY_FILE, folder / str(number))
        yield serving(folder / str(number), key)


@contextmanager
def cluster(url: str, folder: Path) -> Iterator[list[Server]]:
    """Nodes on a database, all with complete windows."""
    with in_database(url), ExitStack() as stack:
        key = new_key(folder / "0", *SCOPES)
        nodes = [stack.enter_context(node) for node in joining(folder, key, NODES)]
        wait_for_whole(url, NODES)
        yield nodes


def wait_for_whole(url: str, count: int) -> None:
    """Wait until so many nodes could own the journal at once."""
    while count_whole([url]) != [count]:
        time.sleep(0.05)


def owner_of(url: str, nodes: list[Server]) -> Server:
    """Return the node that decides; it is removed from the list."""
    with psycopg.connect(url, autocommit=True) as connection:
        ((process,),) = connection.execute(_OWNER).fetchall()
    (found,) = [each for each in nodes if process.startswith(f"{each.process.pid} ")]
    nodes.remove(found)
    return found


def backends(url: str) -> dict[int, float]:
    """Return the processor seconds of each connection to the database, by its process."""
    found = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for (pid,) in connection.execute(_BACKENDS):
            # A process that has ended meanwhile used little.
            with suppress(FileNotFoundError):
                found[pid] = cpu_seconds(pid)
    return found


def size_and_payments(url: str) -> tuple[int, int]:
    """Return the database's size in bytes with its indexes, and its number of payments."""
    with psycopg.connect(url, autocommit=True) as connection:
        ((size, payments),) = connection.execute(_KEPT).fetchall()
        return size, payments


class Round(NamedTuple):
    """ms of each payment and the results of 64 at once, by service; bytes in the database per
    payment; seconds that nobody decided; and of each turn, the loads of one node and of two, and the
    parts of two nodes' work.
    """

    waits: dict[str, list[float]]
    loads: dict[str, AtOnce]
    payment_bytes: float
    gaps: dict[signal.Signals, float]
    shared: list[tuple[SharedLoad, ...]]
    parts: list[Parts]


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
        before = size_and_payments(url)
        waits = alternating(served, count, random)
        for each in served.values():
            load(each, 1, connections=AT_ONCE)
        loads = {name: at_once(each, named, url, seconds) for name, each in served.items()}
        size, payments = (b - a for a, b in zip(before, size_and_payments(url), strict=True))
        gaps = {}
        for number, how in enumerate(ENDS):
            owner = owner if number == 0 else owner_of(url, nodes)
            wait_for_whole(url, NODES - number)
            gaps[how] = longest_wait(nodes[0], owner, how, random)
    return Round(
        waits,
        loads,
        size / payments,
        gaps,
        shared_loads(server, folder / "shared", seconds),
        parts_of_work(server, folder / "parts", seconds),
    )


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
            arguments = (given.server, Path(name), given.payments, given.seconds)
            rounds.append(measure(*arguments, random))
    show_waits(rounds)
    show_loads(rounds)
    payment_bytes = median(each.payment_bytes for each in rounds)
    show(
        "The database",
        ("bytes a payment of 1.6 KB, indexes included",),
        [(f"{payment_bytes:,.0f}",)],
    )
    show_gaps(rounds)
    show_shared(rounds)
    show_parts(rounds)


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
        ratio = median(each.loads[name].rate / each.loads["embedded"].rate for each in rounds)
        cpu = {
            part: median(each.loads[name].cpu[part] for each in rounds)
            for part in rounds[0].loads[name].cpu
        }
        # Other processes do background work, which isn't the payments'.
        parts = [cpu[part] if _takes_part(part, name) else None for part in cpu]
        rows.append((name, f"{rate:,.0f}", f"{ratio:.2f}", *parts))
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


def show_shared(rounds: Sequence[Round]) -> None:
    turns = [turn for each in rounds for turn in each.shared]
    rows = []
    for number in range(len(turns[0])):
        found = [turn[number] for turn in turns]
        busiest = median(max(each.nodes) for each in found)
        times = median(max(turn[0].nodes) / max(turn[number].nodes) for turn in turns)
        rate, indexes = (
            median(getattr(each, name) for each in found) for name in ("rate", "indexes")
        )
        rows.append((number + 1, f"{rate:,.0f}", busiest, indexes, f"{times:.2f}"))
    head = (
        "nodes",
        "payments/s here",
        "busiest node, CPU µs",
        "indexes, CPU µs",
        "× by a core each",
    )
    show("Two accounts, a shard for each node", head, rows)


def show_parts(rounds: Sequence[Round]) -> None:
    turns = [turn for each in rounds for turn in each.parts]
    decided, followed, forwarded = (
        median(getattr(each, name) for each in turns) for name in Parts._fields
    )
    times = median(each.decided / each.of_two() for each in turns)
    head = ("deciding", "following", "forwarding", "each of two nodes", "× by a core each")
    row = (decided, followed, forwarded, median(each.of_two() for each in turns), f"{times:.2f}")
    show("Two nodes by the parts of their work, µs a payment", head, [row])


if __name__ == "__main__":
    main()
