"""The process that those of tests are forked from, as a start of their own takes seconds: one for all
workers of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.forkserver import ForkServer
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

FORKED = get_context("forkserver")
_ROOM = "tollkeeper.tests.service"
FORKED.set_forkserver_preload(
    ["__main__", f"{_ROOM}.uncollected", f"{_ROOM}.process", f"{_ROOM}.made_once"]
)


def fork(run: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A process that performs `run(*arguments)`, as do those that it forks in turn."""
    process = FORKED.Process(target=_run, args=(shared_address(), run, arguments))
    process.start()
    return process


def shared_address() -> str:
    """Where the one listens that this process forks from; its own is started when it has none."""
    server: Any = forkserver
    server._forkserver.ensure_running()
    address: str = server._forkserver._forkserver_address
    return address


def fork_from(address: str) -> None:
    """From now on, this process forks from the one that listens there."""
    server: Any = forkserver
    server._forkserver = _Shared(address)
    server.connect_to_new_process = server._forkserver.connect_to_new_process


def fork_solver(patch: pytest.MonkeyPatch) -> None:
    """Have the solver's process forked: its start takes longer than most questions."""
    # Imported here: it takes long, and most processes that collect tests ask nothing.
    from tollkeeper.engine.offline.prove import worker

    patch.setattr(worker, "get_context", lambda _method: FORKED)


def _run(address: str, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    fork_from(address)
    fork_solver(pytest.MonkeyPatch())
    run(*arguments)


class _Shared(ForkServer):
    """One that another process has started, and ends."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._forkserver_address = address
        # It tells one's own that it is still wanted.
        self._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)

    def ensure_running(self) -> None:
        resource_tracker.ensure_running()
