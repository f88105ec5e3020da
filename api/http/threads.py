"""Threads beside the event loop, configured to delay payments as little as possible.

A thread keeps the interpreter until the switch interval ends, 5 ms by default: too long for the
many steps of a payment. So the interval is shortened while a thread works on a request. It isn't
always short, because the loop and the journal's thread would then alternate so often that a payment
costs 5 % more processor time (`bench.http`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

ALONE_S = 0.0005
BESIDE_WORK_S = 0.0001


class YieldingThreads(ThreadPoolExecutor):
    """For `loop.set_default_executor`: the switch interval is shortest while one of the threads
    works.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="beside")
        sys.setswitchinterval(ALONE_S)
        self._working = 0
        self._counting = Lock()

    def submit(self, fn: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs) -> Future[_T]:
        working = super().submit(fn, *given, **named)
        self._count(1)
        working.add_done_callback(self._count_ended)
        return working

    def _count_ended(self, _: Future[Any]) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        with self._counting:
            self._working += change
            sys.setswitchinterval(BESIDE_WORK_S if self._working else ALONE_S)
