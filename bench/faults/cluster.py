"""Nodes of the service, each on a machine of its own with a small disk and a wrong clock."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copy
from signal import SIGABRT, SIGKILL, SIGTERM

import httpx
from click.testing import CliRunner

from tollkeeper.bench.faults.database import Pair
from tollkeeper.bench.faults.network import inside, run
from tollkeeper.bench.servers import TOLL
from tollkeeper.cli import main
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.postgres.shards import open_shards

SCHEMAS = ("public", "shard_2")
"""The schema of each shard in the database."""
_PATIENCE_S = 60
_DISK = "192m"
_PORT, _BETWEEN = 8000, 8001
_SKEWS_S = (0.7, -0.7, 0.0)
_REACH = ("--reach", "any")
SCOPES = ("payments", "rules", "admin", "personal:read", "people:write")
_LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def other_clock(seconds: float) -> dict[str, str]:
    """Return the environment of a process whose clock is so many seconds ahead; empty if
    libfaketime is not installed.
    """
    found = sorted(Path("/").glob(_LIBRARIES.lstrip("/")))
    if not found or not seconds:
        return {}
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": f"{seconds:+}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


class Node:
    """A node; `machine` is where it runs. `was_stuck` is set if it didn't end when told to."""

    def __init__(self, machine: str, number: int, address: str, folder: Path, pair: Pair) -> None:
        self.machine, self.number, self.address = machine, number, address
        self.folder = folder / machine
        self.url = f"http://{address}:{_PORT}"
        self.log = folder / f"{machine}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.was_stuck = False
        self._pair = pair
        self.folder.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", self.folder)

    def start(self) -> None:
        options = ("--host", self.address, "--port", str(_PORT))
        between = ("--node-host", self.address, "--node-port", str(_BETWEEN))
        command = (TOLL, "serve", "--data", self.folder, *options, *between, *_REACH)
        environment = {**os.environ, **other_clock(_SKEWS_S[self.number])}
        environment |= {"TOLL_DATABASE": self._pair.url, "PYTHONFAULTHANDLER": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                inside(self.machine, *command), stdout=log, stderr=log, env=environment
            )

    def kill(self) -> None:
        """Kill it at once."""
        if self.process is not None:
            self.process.send_signal(SIGKILL)
            self.process.wait(_PATIENCE_S)

    def end(self) -> None:
        self.kill()
        run("umount", "--lazy", self.folder)

    def stop(self) -> None:
        """Stop it in an orderly way. If it doesn't end in time, it first writes its stacks to its
        log.
        """
        if self.process is not None:
            self.process.send_signal(SIGTERM)
            try:
                self.process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.was_stuck = True
                self.process.send_signal(SIGABRT)
                self.process.wait(_PATIENCE_S)

    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health/ready", timeout=2).status_code == 200
        return False

    def require_running(self) -> None:
        """Restart it if it has ended by itself."""
        if self.process is None or self.process.poll() is not None:
            self.start()


def made_accounts(folder: Path, url: str, names: Sequence[str]) -> dict[str, str]:
    """Return a key of each account; all are made before any node runs, and divided among the
    shards.
    """
    open_shards(url, len(SCHEMAS))

    def toll(*arguments: str) -> str:
        done = CliRunner().invoke(main, [*arguments, "--data", str(folder), "--database", url])
        assert done.exit_code == 0, done.output
        return done.stdout.strip()

    keys = {}
    scopes = [part for scope in SCOPES for part in ("--scope", scope)]
    for name in names:
        toll("accounts", "create", name)
        keys[name] = toll("keys", "create", "--account", name, *scopes)
    return keys


def share_key(origin: Path, nodes: Sequence[Node]) -> None:
    """Give each node the key of the folder in which the accounts were made."""
    for node in nodes:
        copy(origin / KEY_FILE, node.folder)


def wait_until_ready(nodes: Sequence[Node], seconds: float) -> list[Node]:
    """Return the nodes that don't answer after so many seconds. One that ends meanwhile, as after a
    fault that hit its start, is restarted.
    """
    deadline = time.monotonic() + seconds
    waiting = list(nodes)
    while waiting and time.monotonic() < deadline:
        waiting = [each for each in waiting if not each.is_ready()]
        for each in waiting:
            each.require_running()
        time.sleep(0.1)
    return waiting
