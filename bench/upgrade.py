"""Is anything lost, sent twice or delayed while nodes are upgraded to another release and back?

    python -m tollkeeper.bench.upgrade [--former HEAD~1] [--server URL]

`--former` is a commit of this repository, whose nodes make a database on the server and divide two
shards of accounts. While clients send requests as in `bench.chaos`, each node is stopped and
restarted with the current release; then with the former one again, which needs a release that only
adds to the tables. At the end the same checker recounts every recorded read and verifies every
answer and every notice.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from random import Random
from shutil import copy
from tempfile import TemporaryDirectory
from threading import Thread

import psycopg
from rich.console import Console

from tollkeeper.bench.faults.afterwards import explain, read_journal, wait_for_notices
from tollkeeper.bench.faults.checker import KINDS, Findings, check
from tollkeeper.bench.faults.clients import Client, World
from tollkeeper.bench.faults.cluster import SCHEMAS, SCOPES
from tollkeeper.bench.faults.history import NO_ANSWER, History, Operation
from tollkeeper.bench.faults.receiver import receiver
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.servers import TOLL, free_port, wait_for
from tollkeeper.bench.tables import Cell, Target, show, show_targets
from tollkeeper.engine.folder_key import KEY_FILE

NODES = 3
ACCOUNTS = ("shop", "store", "kiosk")
CLIENTS = 6
PAUSE_S = 4.0
"""The pause between the restarts of two nodes."""
_PATIENCE_S = 120.0
_ROOT = Path(__file__).parents[1]
_WHOLE = " UNION ALL ".join(
    f"SELECT count(*) FROM {schema}.nodes WHERE is_whole" for schema in SCHEMAS
)
notes = Console(stderr=True)


def taken_out(commit: str, folder: Path) -> dict[str, str]:
    """Return the environment of a process that runs a commit's release."""
    command = ["git", "-C", str(_ROOT), "archive", commit]
    packed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder / "tollkeeper", filter="data")
    return {"PYTHONPATH": str(folder)}


class Node:
    """A node; `environment` is its process's."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._port, self._between = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    def start(self, release: dict[str, str]) -> None:
        """Start it and wait until it is ready."""
        ports = ("--port", str(self._port), "--node-port", str(self._between))
        command = (TOLL, "serve", "--data", self.folder, *ports, "--reach", "any", "--shards", "2")
        with self.folder.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**self._environment, **release}, stdout=log, stderr=log
            )
        wait_for(f"{self.url}/health/ready", self._process)

    def stop(self) -> None:
        """Stop it in an orderly way."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE_S)


def upgraded(folder: Path, url: str, former: dict[str, str], seed: int) -> tuple[History, Findings]:
    """Return the requests, the journal and the notices of nodes that were upgraded and downgraded
    again, and the findings.
    """
    environment = {**os.environ, "TOLL_DATABASE": url}
    port = free_port()
    with ExitStack() as stack:
        notices = stack.enter_context(receiver(port))
        nodes = [Node(folder / str(number), environment) for number in range(NODES)]
        for node in nodes:
            stack.callback(node.stop)
        nodes[0].start(former)
        keys = {
            name: made_account(nodes[0].folder, {**environment, **former}, name)
            for name in ACCOUNTS
        }
        for node in nodes[1:]:
            copy(nodes[0].folder / KEY_FILE, node.folder)
            node.start(former)
        wait_until_whole(url)
        world = World([each.url for each in nodes], keys, seed)
        for number, account in enumerate(ACCOUNTS):
            Client(world, account, 100 + number).begin(f"http://127.0.0.1:{port}/{account}")
        clients = [Client(world, ACCOUNTS[n % len(ACCOUNTS)], n) for n in range(CLIENTS)]
        threads = [Thread(target=each.run) for each in clients]
        for thread in threads:
            thread.start()
        try:
            for name, release in (("this release", {}), ("the former one", former)):
                for number, node in enumerate(nodes):
                    time.sleep(PAUSE_S)
                    node.stop()
                    node.start(release)
                    wait_until_whole(url)
                    notes.print(f"node {number} is {name}")
        finally:
            world.ending.set()
            for thread in threads:
                thread.join()
        with psycopg.connect(url) as connection:
            journal = read_journal(connection)
        wait_for_notices(journal, notices, _PATIENCE_S)
        history = History(world.operations, journal, list(notices))
        findings = check(history)
        explain(world, journal, findings, Random(seed))
    return history, findings


def made_account(folder: Path, environment: dict[str, str], name: str) -> str:
    """Return a key of a new account."""
    scopes = [part for scope in SCOPES for part in ("--scope", scope)]
    for arguments in (("accounts", "create", name), ("keys", "create", "--account", name, *scopes)):
        command = [str(TOLL), *arguments, "--data", str(folder)]
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return result.stdout.decode().strip()


def wait_until_whole(url: str) -> None:
    """Wait until each node has windows of each shard with which it could own it."""
    deadline = time.monotonic() + _PATIENCE_S
    with psycopg.connect(url, autocommit=True) as connection:
        while {count for (count,) in connection.execute(_WHOLE)} != {NODES}:
            assert time.monotonic() < deadline, "the nodes were never whole"
            time.sleep(0.1)


def longest_wait(operations: Sequence[Operation]) -> float:
    """Return the longest time (s) until an operation was done, over all its attempts."""
    return max(each.attempts[-1].ended - each.attempts[0].begun for each in operations)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--former", default="HEAD~1")
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as name, own_database(given.server) as url:
        folder = Path(name)
        former = taken_out(given.former, folder / "former")
        history, findings = upgraded(folder, url, former, given.seed)
    show_found(history.operations, findings)
    sys.exit(bool(findings.faults))


def show_found(operations: Sequence[Operation], findings: Findings) -> None:
    statuses = [attempt.status for each in operations for attempt in each.attempts]
    rows: list[tuple[str, Cell]] = [
        *sorted(findings.counts.items()),
        ("attempts that were answered 503", statuses.count(503)),
        ("attempts that were answered 502", statuses.count(502)),
        ("attempts without an answer", statuses.count(NO_ANSWER)),
        ("longest wait until an operation was done, s", f"{longest_wait(operations):.1f}"),
    ]
    show(f"{NODES} nodes, upgraded and back", ("what was asked and told", "number"), rows)
    show_targets([Target(kind, findings.of(kind), at_most=0) for kind in KINDS])
    for fault in findings.faults[:20]:
        notes.print(f"{fault.kind}: {fault.words}")


if __name__ == "__main__":
    main()
