"""Is anything lost, sent twice or decided on false data when nodes, links and databases fail?

    python -m tollkeeper.bench.chaos [--seconds 60] [--seed N] [--keep FOLDER] [--patroni COMMAND]

Three nodes with two shards of accounts, a PostgreSQL primary, and a standby that each commit waits
for run in network namespaces of their own, with differing clocks. Clients report payments (some
late), updates, events and labels, publish, block, erase, and switch to another node when one
doesn't answer, while faults are made and repaired one after another; webhooks receive the notices.
Afterwards a checker that shares no code with the engine recounts every recorded read by brute
force, and verifies every answer and every notice. Needs root and PostgreSQL's binaries.

With Patroni's command (and `etcd`), Patroni promotes the standby, and its servers are broken. A
history with findings is saved, with each node's log.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from shutil import copy
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread

from rich.console import Console

from tollkeeper.bench.faults import database, patroni
from tollkeeper.bench.faults.afterwards import explain, read_journal, wait_for_notices
from tollkeeper.bench.faults.checker import KINDS, Findings, check
from tollkeeper.bench.faults.clients import Client, World
from tollkeeper.bench.faults.cluster import (
    Node,
    made_accounts,
    other_clock,
    share_key,
    wait_until_ready,
)
from tollkeeper.bench.faults.database import Pair
from tollkeeper.bench.faults.faults import FAULTS, Fault, Site, broken, name_of
from tollkeeper.bench.faults.history import History, write
from tollkeeper.bench.faults.network import ROUTER, missing, network, run_in_namespaces
from tollkeeper.bench.faults.receiver import receiver
from tollkeeper.bench.tables import Target, show, show_targets

MACHINES = ("node-1", "node-2", "node-3", "database-1", "database-2")
PORT = 9000
"""The webhooks' port, on the router."""
ACCOUNTS = ("shop", "store", "kiosk")
CLIENTS = 12
SKIPPED = 77
"""The exit code if it can't run here, as test suites use it."""
HOLDS_S = (1.0, 4.0)
"""How long a fault lasts."""
MENDS_S = (0.5, 3.0)
"""How long there is no fault."""
_PATIENCE_S = 180
notes = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", type=Path, help="keep the history in this folder")
    parser.add_argument("--patroni", type=Path, help="who looks after the databases")
    given = parser.parse_args()
    lacking = None if given.patroni is None else patroni.missing(given.patroni)
    if (reason := missing() or database.missing() or lacking) is not None:
        notes.print(f"chaos can't be had here: {reason}")
        sys.exit(SKIPPED)
    code = run_in_namespaces(["-m", "tollkeeper.bench.chaos", *sys.argv[1:]])
    if code is not None:
        sys.exit(code)
    seed = int(time.time()) if given.seed is None else given.seed
    notes.print(f"seed {seed}")
    with TemporaryDirectory(prefix="toll-chaos-") as name:
        folder = Path(name)
        # Servers run as another user, who needs access to the folder.
        folder.chmod(0o755)
        history, made, findings = measure(folder, given.seconds, seed, given.patroni)
        keep = given.keep
        if findings.faults and keep is None:
            keep = Path(gettempdir(), f"toll-chaos-{seed}")
        if keep is not None:
            write(keep, history)
            for log in (*folder.glob("*.log"), *folder.glob("databases/*.log")):
                copy(log, keep)
            notes.print(f"history and logs in {keep}")
    show_found(findings, made, seed, given.seconds)
    sys.exit(bool(findings.faults))


def measure(
    folder: Path, seconds: float, seed: int, manager: Path | None
) -> tuple[History, Counter[str], Findings]:
    """Return the requests, the journal and the notices; the faults made; and the findings."""
    faults = FAULTS if manager is None else patroni.FAULTS
    with cluster(folder, manager) as (site, keys), receiver(PORT) as notices:
        site.random.seed(seed)
        world = World([each.url for each in site.nodes], keys, seed)
        for number, account in enumerate(ACCOUNTS):
            Client(world, account, 100 + number).begin(f"http://{ROUTER}:{PORT}/{account}")
        clients = [Client(world, ACCOUNTS[n % len(ACCOUNTS)], n) for n in range(CLIENTS)]
        publishing = [Client(world, name, 200 + n) for n, name in enumerate(ACCOUNTS)]
        threads = [Thread(target=each.run) for each in clients]
        threads += [Thread(target=each.publish) for each in publishing]
        for thread in threads:
            thread.start()
        try:
            made = break_things(site, faults, seconds)
        finally:
            world.ending.set()
            for thread in threads:
                thread.join()
        stuck = wait_until_ready(site.nodes, _PATIENCE_S)
        with site.pair.connected() as connection:
            journal, known = read_journal(connection), -1
            # A node may still do what its client has given up waiting for.
            while len(journal) != known:
                known = len(journal)
                wait_for_notices(journal, notices, _PATIENCE_S)
                received = list(notices)
                journal = read_journal(connection)
        history = History(world.operations, journal, received)
        findings = check(history)
        for node in stuck:
            findings.add("nodes that stay away", node.machine)
        for node in site.nodes:
            if node.was_stuck:
                findings.add("nodes that do not end", node.machine)
        explain(world, journal, findings, site.random)
    return history, made, findings


@contextmanager
def cluster(folder: Path, manager: Path | None) -> Iterator[tuple[Site, dict[str, str]]]:
    """Nodes that are ready, their database, and a key of each account."""
    with ExitStack() as stack:
        addresses = stack.enter_context(network((*MACHINES, patroni.COORDINATOR)))
        of_pair = (folder / "databases", (MACHINES[3], MACHINES[4]), addresses)
        pair = Pair(*of_pair) if manager is None else patroni.ManagedPair(*of_pair, manager)
        stack.callback(pair.end)
        pair.begin()
        keys = made_accounts(folder / "first", pair.url, ACCOUNTS)
        nodes = [
            Node(machine, number, addresses[machine], folder, pair)
            for number, machine in enumerate(MACHINES[:3])
        ]
        share_key(folder / "first", nodes)
        for node in nodes:
            stack.callback(node.end)
            node.start()
        assert not wait_until_ready(nodes, _PATIENCE_S), "the nodes were never ready"
        yield Site(nodes, pair, addresses, Random()), keys


def break_things(site: Site, faults: Sequence[Fault], seconds: float) -> Counter[str]:
    """Make one fault after another, in an order drawn from the seed; return how often each was
    made.
    """
    made: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    begun = time.monotonic()
    while True:
        for fault in site.random.sample(faults, len(faults)):
            time.sleep(site.random.uniform(*MENDS_S))
            if time.monotonic() > deadline:
                return made
            name = name_of(fault)
            notes.print(f"{time.monotonic() - begun:6.1f} s  {name}")
            with broken(fault, site):
                time.sleep(site.random.uniform(*HOLDS_S))
            for node in site.nodes:
                node.require_running()
            made[name] += 1


def show_found(findings: Findings, made: Counter[str], seed: int, seconds: float) -> None:
    clocks = "0.7 s ahead, 0.7 s behind, right" if other_clock(1) else "right, without libfaketime"
    notes.print(f"clocks: {clocks}")
    title = f"{seconds:g} s, {sum(made.values())} faults, seed {seed}"
    show(title, ("what was asked and told", "number"), sorted(findings.counts.items()))
    show("Faults that were made", ("", "times"), sorted(made.items()))
    kinds = (*KINDS, "nodes that stay away", "nodes that do not end")
    show_targets([Target(kind, findings.of(kind), at_most=0) for kind in kinds])
    for fault in findings.faults[:20]:
        notes.print(f"{fault.kind}: {fault.words}")


if __name__ == "__main__":
    main()
