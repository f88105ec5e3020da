"""Processes that count windows beside this one."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread


def open_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool whose processes end with this one, also when it is killed.

    Otherwise each would wait for work for ever: it holds the pipe open that it reads from.
    """
    return ProcessPoolExecutor(processes, get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
