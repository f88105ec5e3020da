"""A service in a process of its own, as an operator starts it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
from click.testing import CliRunner

from tollkeeper.api.http.settings import Settings
from tollkeeper.cli import main

TOLL = Path(sys.executable).with_name("toll")
PATIENCE_S = 60.0
SERVE = """
import pathlib, sys, msgspec
from tollkeeper.api.http.serve import serve
from tollkeeper.api.http.settings import Settings
hook = lambda type, value: type(value)
serve(msgspec.json.decode(sys.argv[1], type=Settings, dec_hook=hook), lambda share: None)
"""


def toll(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command on the folder's data, to its end: in this process, where it starts at once.

    A thread runs it, for a command has an event loop of its own and a test may have one.
    """
    command = [*arguments, "--data", str(folder)]
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(CliRunner().invoke, main, command).result()
    assert isinstance(done.exception, SystemExit | None), done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def new_key(folder: Path, *scopes: str) -> str:
    """A key of account `shop`, which is made when it isn't there."""
    toll(folder, "accounts", "create", "shop")
    asked = [part for scope in scopes for part in ("--scope", scope)]
    return toll(folder, "keys", "create", "--account", "shop", *asked).stdout.strip()


class Running:
    """A running service: where it answers, and its process."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self.process = process

    def kill(self) -> None:
        """As a power cut would: SIGKILL, and no time for anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)


@contextmanager
def serving(folder: Path, options: Sequence[str] = ()) -> Iterator[Running]:
    """Serves the folder until the block ends; ready when the block begins."""
    port = free_port()
    command = [TOLL, "serve", "--data", str(folder), "--port", str(port), *options]
    with _started(command, folder.parent / "serve.log", port) as running:
        yield running


@contextmanager
def serving_within(folder: Path, **limits: int) -> Iterator[Running]:
    """Serves the folder within these limits of `Settings`."""
    port = free_port()
    settings = Settings(folder=folder, port=port, **limits)
    command = [sys.executable, "-c", SERVE, msgspec.json.encode(settings, enc_hook=str).decode()]
    with _started(command, folder.parent / "serve.log", port) as running:
        yield running


@contextmanager
def _started(command: Sequence[str | Path], log: Path, port: int) -> Iterator[Running]:
    with log.open("ab") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=lines)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url, process)
            yield Running(url, process)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the service ended before it was ready"
        try:
            if httpx.get(f"{url}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the service was never ready")
