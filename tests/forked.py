"""The process that those of tests are forked from, as a start of their own takes seconds: one for all
workers of a run.
"""

from __future__ import annotations

import os
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.forkserver import ForkServer

FORKED = get_context("forkserver")
_ROOM = "tollkeeper.tests.service"
FORKED.set_forkserver_preload(
    ["__main__", f"{_ROOM}.uncollected", f"{_ROOM}.process", f"{_ROOM}.made_once"]
)


def shared_address() -> str:
    """Where this process's own listens, which is started when it isn't there."""
    forkserver.ensure_running()
    address: str = forkserver._forkserver._forkserver_address  # type: ignore[attr-defined]
    return address


def fork_from(address: str) -> None:
    """From now on, `FORKED` forks from the one that listens there."""
    forkserver.connect_to_new_process = _Shared(address).connect_to_new_process


class _Shared(ForkServer):
    """One that another process has started, and ends."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._forkserver_address = address
        # It tells one's own that it is still wanted.
        self._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)

    def ensure_running(self) -> None:
        resource_tracker.ensure_running()
