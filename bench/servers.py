"""Servers in processes of their own, for the benchmarks over HTTP."""

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
START_S = 3600
"""The longest time until a server answers, which may first build the windows of millions of payments."""


@dataclass(frozen=True)
class Server:
    """`key` is an API key, empty if none is needed."""

    url: str
    process: subprocess.Popen[bytes]
    key: str = ""


def toll(folder: Path, *arguments: str) -> str:
    """Return the output of a command on the folder; raises if it fails."""
    command = [str(TOLL), *arguments, "--data", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout


def new_key(folder: Path, *scopes: str, account: str = ACCOUNT) -> str:
    """Return a key of a new account."""
    toll(folder, "accounts", "create", account)
    options = [part for scope in scopes for part in ("--scope", scope)]
    return toll(folder, "keys", "create", "--account", account, *options).strip()


UNBOUNDED = ("--key-reports", "1000000", "--account-reports", "1000000")
"""Options of a service that accepts any load."""


@contextmanager
def serving(folder: Path, key: str, *options: str) -> Iterator[Server]:
    """`toll serve` on the folder, ready for traffic."""
    port = free_port()
    command = [str(TOLL), "serve", "--data", str(folder), "--port", str(port), *options]
    with running_server(command, port, "/health/ready", key) as server:
        yield server


@contextmanager
def calling(call: str, port: int, path: str, key: str = "") -> Iterator[Server]:
    """A server that Python code runs in a process of its own: `call` is a function's qualified name
    with its arguments, `package.module.function(1)`.
    """
    module = call.partition("(")[0].rpartition(".")[0]
    with running_server(
        [sys.executable, "-c", f"import {module}; {call}"], port, path, key
    ) as server:
        yield server


@contextmanager
def running_server(
    command: Sequence[str | Path], port: int, path: str, key: str = ""
) -> Iterator[Server]:
    """The command's server, from when it answers at `path` until the context ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url + path, process)
        yield Server(url, process, key)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    # A client for each question would take half of a processor from the server that starts.
    with httpx.Client() as client:
        while time.monotonic() < deadline:
            assert process.poll() is None, "the server ended before it answered"
            try:
                if client.get(url).status_code < 500:
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
    """Return the processor time of a process with its threads and children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS + sum(map(cpu_seconds, children(pid)))


def bytes_written(pid: int) -> int:
    """Return what a process, with its threads and children, has had written to disk."""
    counted = Path(f"/proc/{pid}/io").read_text()
    own = int(re.findall(r"^write_bytes: (\d+)$", counted, re.MULTILINE)[0])
    return own + sum(map(bytes_written, children(pid)))


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]


def index_process(server: Server) -> int:
    """Return the id of the index process, once it runs."""
    while True:
        for child in children(server.process.pid):
            if b"tollkeeper.engine.search.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        time.sleep(0.05)


def tell_index(index: int, signal_number: signal.Signals) -> None:
    """Send a signal to the index process, and to the one that catches up for it, if it runs."""
    for process in (index, *children(index)):
        os.kill(process, signal_number)


@dataclass(frozen=True)
class Resources:
    """The resources of a process: `memory` in bytes."""

    memory: int
    files: int
    threads: int


def resources_of(pid: int) -> Resources:
    status = Path(f"/proc/{pid}/status").read_text()
    return Resources(
        memory=1024 * int(re.findall(r"VmRSS:\s+(\d+)", status)[0]),
        files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(re.findall(r"Threads:\s+(\d+)", status)[0]),
    )
