"""Questions are answered in a process of their own, which is killed when one takes too long.

The solver's own limit of time is not always kept: one call was seen to ignore it for 40 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from tollkeeper.engine.offline.prove.questions import SECONDS, ProofVerdict

PATIENCE = 4.0
"""How many times its limit a question may take, its search for a small payment included."""
_START_S = 30.0


class Worker:
    """One process at a time; another is started after one was killed."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, question: Callable[..., ProofVerdict | None], *given: Any) -> ProofVerdict | None:
        """The answer; None when the process had to be killed."""
        pipe = self._pipe or self._start()
        pipe.send((question, given, self._seconds))
        if not pipe.poll(self._seconds * PATIENCE):
            self.stop()
            return None
        found: ProofVerdict | BaseException | None = pipe.recv()
        if isinstance(found, BaseException):
            raise found
        return found

    def _start(self) -> Connection:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_answer, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_START_S):
            raise TimeoutError("the solver's process did not start")
        self._pipe.recv()
        return self._pipe

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


@contextmanager
def open_worker(seconds: float = SECONDS) -> Iterator[Worker]:
    """Each question gets `seconds`; the process ends with the block."""
    worker = Worker(seconds)
    try:
        yield worker
    finally:
        worker.stop()


def _answer(pipe: Connection) -> None:
    pipe.send("ready")
    while True:
        try:
            question, given, seconds = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(question(*given, seconds=seconds))
        except Exception as error:  # it is raised again where the question was asked
            pipe.send(error)
