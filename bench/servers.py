"""Servers in processes of their own, for the benchmarks that go over HTTP."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ACCOUNT = "shop"
TOLL = Path(sys.executable).with_name("toll")
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 300


@dataclass(frozen=True)
class Server:
    """`key` is an API key's, empty where none is asked for."""

    url: str
    process: subprocess.Popen[bytes]
    key: str = ""


def toll(folder: Path, *arguments: str) -> str:
    """What a command on the folder says; raises when it fails."""
    command = [str(TOLL), *arguments, "--data", str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return told.stdout


def new_key(folder: Path, *scopes: str, account: str = ACCOUNT) -> str:
    """A key of a new account."""
    toll(folder, "accounts", "create", account)
    asked = [part for scope in scopes for part in ("--scope", scope)]
    return toll(folder, "keys", "create", "--account", account, *asked).strip()


UNBOUNDED = ("--key-reports", "1000000", "--account-reports", "1000000")
"""Options of a service that is to take all that a load sends."""


@contextmanager
def serving(folder: Path, key: str, *options: str) -> Iterator[Server]:
    """`toll serve` on the folder, ready for traffic."""
    port = free_port()
    command = [str(TOLL), "serve", "--data", str(folder), "--port", str(port), *options]
    with started(command, port, "/health/ready", key) as server:
        yield server


@contextmanager
def calling(call: str, port: int, path: str, key: str = "") -> Iterator[Server]:
    """A server that Python code runs in a process of its own: `call` names a function by its
    module and gives it its arguments, `package.module.function(1)`."""
    module = call.partition("(")[0].rpartition(".")[0]
    with started([sys.executable, "-c", f"import {module}; {call}"], port, path, key) as server:
        yield server


@contextmanager
def started(command: Sequence[str | Path], port: int, path: str, key: str = "") -> Iterator[Server]:
    """The command's server, once it answers at `path`, until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url + path, process)
        yield Server(url, process, key)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it answered"
        try:
            if httpx.get(url).status_code < 500:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise TimeoutError(url)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors, its threads and children included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS + sum(map(cpu_seconds, children(pid)))


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]


def index_process(server: Server) -> int:
    """The id of the process that keeps the index, once it is there."""
    while True:
        for child in children(server.process.pid):
            if b"tollkeeper.engine.search.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        time.sleep(0.05)


def tell_index(index: int, told: signal.Signals) -> None:
    """Tells the process that keeps the index, and the one that catches up for it, if it is there."""
    for process in (index, *children(index)):
        os.kill(process, told)


@dataclass(frozen=True)
class Held:
    """What a process holds: `memory` in bytes."""

    memory: int
    files: int
    threads: int


def held(pid: int) -> Held:
    status = Path(f"/proc/{pid}/status").read_text()
    return Held(
        memory=1024 * int(re.findall(r"VmRSS:\s+(\d+)", status)[0]),
        files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(re.findall(r"Threads:\s+(\d+)", status)[0]),
    )
