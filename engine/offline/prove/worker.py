"""Questions are answered in a process of their own, which is killed when one takes too long.

The solver's own limit of time is not always kept: one call was seen to ignore it for 40 s.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from tollkeeper.engine.offline.prove.questions import SECONDS
from tollkeeper.engine.offline.prove.search import SLACK

_Answer = TypeVar("_Answer")

_PATIENCE = SLACK + 1
"""How many times its seconds a question may compute before its process is killed."""
_STALLED = 20
"""How many times that long it may take on the clock: a process may wait for what never comes."""
_START_S = 30.0


class Worker:
    """A process that answers each question in a copy of itself, so that no answer depends on what
    was asked before."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, question: Callable[..., _Answer], *given: Any) -> _Answer | None:
        """The answer; None when the copy had to be killed."""
        pipe = self._pipe or self._start()
        pipe.send((question, given, self._seconds))
        found: _Answer | BaseException | None = pipe.recv()
        if isinstance(found, BaseException):
            raise found
        return found

    def _start(self) -> Connection:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_START_S):
            raise TimeoutError("the solver's process did not start")
        self._pipe.recv()
        return self._pipe

    def stop(self) -> None:
        """The process ends, with a question that it is at, as soon as nobody listens to it."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join()
        self._process = self._pipe = None


@contextmanager
def open_worker(seconds: float = SECONDS) -> Iterator[Worker]:
    """Each question gets `seconds`; the process ends with the block."""
    worker = Worker(seconds)
    try:
        yield worker
    finally:
        worker.stop()


def _serve(pipe: Connection) -> None:
    pipe.send("ready")
    with suppress(EOFError, BrokenPipeError):
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
    # Without a handler the signal ends the process, whatever the solver is at.
    signal.setitimer(signal.ITIMER_PROF, seconds * _PATIENCE)
    try:
        pipe.send(question(*given, seconds=seconds))
    except Exception as error:  # it is raised again where the question was asked
        pipe.send(error)


def _receive(pipe: Connection) -> Any:
    """None when the copy ended without an answer."""
    try:
        return pipe.recv()
    except EOFError:
        return None
