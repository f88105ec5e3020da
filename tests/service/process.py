"""A service in a process of its own, as an operator starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import httpx
from click.testing import CliRunner, Result

from tollkeeper.api.http.serve import serve
from tollkeeper.api.http.settings import Settings
from tollkeeper.cli import main
from tollkeeper.tests.forked import fork
from tollkeeper.tests.service.forked_modules import fork_modules

TOLL = Path(sys.executable).with_name("toll")
PATIENCE_S = 60.0
HOST = "127.0.0.1"
T = TypeVar("T")


def until(read: Callable[[], T], *wanted: T) -> T:
    """What is read, again and again, once it is one of the wanted; once it is true, where none is."""
    deadline, found = time.monotonic() + PATIENCE_S, read()
    while not (found in wanted if wanted else found):
        assert time.monotonic() < deadline, (
            f"awaited {' or '.join(map(repr, wanted)) or 'anything'} and there is still {found!r}"
        )
        time.sleep(0.05)
        found = read()
    return found


def toll(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command on the folder's data, to its end: in this process, where it starts at once.

    A thread runs it, for a command has an event loop of its own and a test may have one. A test
    that is out of time ends without it.
    """
    command = [*arguments, "--data", str(folder)]
    results: list[Result] = []
    thread = Thread(target=lambda: results.append(CliRunner().invoke(main, command)), daemon=True)
    thread.start()
    thread.join()
    (done,) = results
    assert isinstance(done.exception, SystemExit | None), done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def new_key(folder: Path, *scopes: str) -> str:
    """A key of account `shop`, which is made when it isn't there."""
    toll(folder, "accounts", "create", "shop")
    asked = [part for scope in scopes for part in ("--scope", scope)]
    return toll(folder, "keys", "create", "--account", "shop", *asked).stdout.strip()


class Process:
    """A process forked from one that has loaded the service."""

    def __init__(self, run: Callable[..., None], *arguments: object) -> None:
        self._process = fork(run, *arguments)
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        """Its exit code, once it has ended."""
        self._process.join(seconds)
        code = self.poll()
        assert code is not None, f"the process did not end within {seconds} seconds"
        return code

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()


class Running:
    """A running service: where it answers, and its process."""

    def __init__(self, url: str, process: Process) -> None:
        self.url = url
        self.process = process

    def kill(self) -> None:
        """As a power cut would: SIGKILL, and no time for anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)


def _toll(arguments: list[str]) -> None:
    main(arguments)


def begin(log: Path, *arguments: str) -> Process:
    """A command in a process of its own, which prints into the log."""
    return Process(_logged, log, dict(os.environ), _toll, [*arguments])


@contextmanager
def serving(
    folder: Path, options: Sequence[str] = (), toll: Callable[[list[str]], None] = _toll
) -> Iterator[Running]:
    """Serves the folder with `toll serve` until the block ends; ready when the block begins."""
    with reserved_port() as port:
        command = ["serve", "--data", str(folder), "--port", str(port), *options]
        with _started(folder, port, toll, command) as running:
            yield running


@contextmanager
def serving_within(folder: Path, **settings: Any) -> Iterator[Running]:
    """Serves the folder with these of `Settings`."""
    with reserved_port() as port:
        given = Settings(folder=folder, port=port, **settings)
        with _started(folder, port, _serve, given) as running:
            yield running


def _serve(settings: Settings) -> None:
    serve(settings, lambda _share: None)


def _logged(log: Path, environment: dict[str, str], run: Callable[..., None], given: Any) -> None:
    """What a process does: `run(given)`, all that it prints in the log."""
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as lines:
        os.dup2(lines.fileno(), 1)
        os.dup2(lines.fileno(), 2)
    fork_modules()
    run(given)


@contextmanager
def _started(folder: Path, port: int, run: Callable[..., None], given: object) -> Iterator[Running]:
    log = folder.parent / "serve.log"
    process = Process(_logged, log, dict(os.environ), run, given)
    try:
        url = f"http://{HOST}:{port}"
        wait_until_ready(url, process, log)
        yield Running(url, process)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that the system gives to nobody else meanwhile: who is told of it can listen there."""
    with socket.socket() as held:
        # It never listens: so a listener, which may use an address again as this does, is let in.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, 0))
        yield int(held.getsockname()[1])


def wait_until_ready(url: str, process: Process, log: Path) -> None:
    # Without TLS no certificates are loaded, which takes longer than a start.
    with httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client:

        def health() -> str:
            assert process.poll() is None, f"it ended before it was ready: {last_lines(log)}"
            try:
                answer = client.get("/health/ready")
            except httpx.TransportError as error:
                return f"{error!r}: {last_lines(log)}"
            return "ready" if answer.status_code == 200 else answer.text

        until(health, "ready")


def last_lines(log: Path) -> str:
    return log.read_text()[-2000:] if log.exists() else "it has logged nothing"
