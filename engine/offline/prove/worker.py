"""Answer questions in a process of its own, which is killed if one takes too long.

The solver doesn't always respect its time limit: one call ignored it for 40 s.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import z3

from tollkeeper.engine.offline.prove.questions import SECONDS
from tollkeeper.engine.offline.prove.search import SLACK

_Answer = TypeVar("_Answer")

_PATIENCE = SLACK + 1
"""How many times its time limit a question may compute before its process is killed."""
_STALLED = 5
"""How many times as long it may take in wall time, for when other processes use the processors, or its
process waits for something that never comes: the caller waits no longer.
"""
_START_S = 30.0
_MEGABYTES = 512
"""The solver's memory for a question."""


class Worker:
    """A process that answers each question in a forked copy, so that no answer depends on earlier
    questions. Without an answer `within` seconds of the first question, no more are asked.
    """

    def __init__(self, seconds: float = SECONDS, within: float | None = None) -> None:
        self._seconds = seconds
        self._within = within
        self._end: float | None = None
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, question: Callable[..., _Answer], *given: Any) -> _Answer | None:
        """Return the answer; None if the copy had to be killed, or if it is too late."""
        if self.is_late():
            return None
        pipe = self._pipe or self._start()
        if self._within is not None and self._end is None:
            self._end = time.monotonic() + self._within
        pipe.send((question, given, self._seconds))
        if not pipe.poll(None if self._end is None else max(0.0, self._end - time.monotonic())):
            self.stop()
            return None
        found: _Answer | BaseException | None = pipe.recv()
        if isinstance(found, BaseException):
            raise found
        return found

    def is_late(self) -> bool:
        """Whether no more questions are asked."""
        return self._end is not None and time.monotonic() >= self._end

    def _start(self) -> Connection:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        with _held_interrupts():
            self._process.start()
        theirs.close()
        if not self._pipe.poll(_START_S):
            raise TimeoutError("the solver's process did not start")
        self._pipe.recv()
        return self._pipe

    def stop(self) -> None:
        """Stop the process; a question in progress is abandoned."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join()
        self._process = self._pipe = None


@contextmanager
def open_worker(seconds: float = SECONDS, within: float | None = None) -> Iterator[Worker]:
    """A worker while the context lasts; each question gets `seconds`, all of them `within`."""
    worker = Worker(seconds, within)
    try:
        yield worker
    finally:
        worker.stop()


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """A process started within takes no Ctrl-C, which a terminal sends to all processes: it ends
    with its pipe.
    """
    resource_tracker.ensure_running()  # starting it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection) -> None:
    with suppress(EOFError, BrokenPipeError):
        pipe.send("ready")
        while True:
            question, given, seconds = pipe.recv()
            ours, theirs = Pipe(duplex=False)
            copy = os.fork()
            if copy == 0:
                _answer(theirs, question, given, seconds)
                os._exit(0)
            theirs.close()
            with ours:
                heard = wait([pipe, ours], seconds * _PATIENCE * _STALLED)
                found = _receive(ours) if ours in heard else None
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
            if pipe in heard:
                return
            pipe.send(found)


def _answer(
    pipe: Connection, question: Callable[..., Any], given: tuple[Any, ...], seconds: float
) -> None:
    z3.set_param("memory_max_size", _MEGABYTES)
    # With the default handler the signal ends the process, whatever the solver is doing.
    signal.setitimer(signal.ITIMER_PROF, seconds * _PATIENCE)
    try:
        pipe.send(question(*given, seconds=seconds))
    except Exception as error:  # raised again in the process that asked
        pipe.send(error)


def _receive(pipe: Connection) -> Any:
    """Return None if the copy ended without an answer."""
    try:
        return pipe.recv()
    except EOFError:
        return None
