"""The process that jobs run in: `python -m … MEGABYTES`.

It reads length-prefixed pickles of `JobCall` from its standard input, and writes `JobWord`s to its
standard output: a job's progress, partial results, and its result. It runs at the lowest priority
and ends when its standard input closes, even during a job, so that nothing outlives the service.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Literal, NamedTuple

from tollkeeper.engine.registry.errors import Refused

LENGTH_BYTES = 4
"""The bytes of a message's length, big-endian."""
_NICENESS = 15
_LEAST_STEP = 0.005


class JobCall(NamedTuple):
    """A job: `work(progress, *given)` within `seconds` of processor time; `work` is a function of a
    module."""

    work: Callable[..., Any]
    given: tuple[Any, ...]
    seconds: float


class JobWord(NamedTuple):
    """A message of a job: the share done, a partial result, its result, the violations for which it
    was refused; or, without a `value`, that it exceeded its time or memory, or failed."""

    what: Literal["progress", "shown", "found", "refused", "slow", "memory", "failed"]
    value: Any = None


def main(megabytes: int) -> None:
    """Run jobs until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    # A job's own output must not get between the messages.
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    signal.signal(signal.SIGPROF, _stop_slow)
    jobs: SimpleQueue[JobCall] = SimpleQueue()
    Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    while True:
        _send(output, _done(jobs.get(), output))


def _read_jobs(source: BinaryIO, jobs: SimpleQueue[JobCall]) -> None:
    while length := source.read(LENGTH_BYTES):
        jobs.put(JobCall(*pickle.loads(source.read(int.from_bytes(length)))))  # noqa: S301 - the service's own
    os._exit(0)


def _done(job: JobCall, output: BinaryIO) -> bytes:
    """Run a job; returns its last message, also when its result can't be pickled."""
    progress = _SentProgress(output)
    try:
        signal.setitimer(signal.ITIMER_PROF, job.seconds)
        return _pack(JobWord("found", job.work(progress, *job.given)))
    except _SlowJob:
        return _pack(JobWord("slow"))
    except Refused as refused:
        return _pack(JobWord("refused", tuple(refused.violations)))
    except MemoryError:
        return _pack(JobWord("memory"))
    except Exception:
        # Whatever it is, the caller must be told.
        traceback.print_exc(file=sys.stderr)
        return _pack(JobWord("failed"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class _SentProgress:
    """Sends a job's progress and partial results."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._told = 0.0

    def __call__(self, share: float, /) -> None:
        if share >= self._told + _LEAST_STEP:
            self._told = share
            _send(self._output, _pack(JobWord("progress", share)))

    def show(self, found: Any, /) -> None:
        _send(self._output, _pack(JobWord("shown", found)))


class _SlowJob(BaseException):
    """A job exceeded its time; raised wherever it is then."""


def _stop_slow(_signal: int, _frame: object) -> None:
    raise _SlowJob


def _pack(word: JobWord) -> bytes:
    return pickle.dumps(tuple(word))


def _send(output: BinaryIO, message: bytes) -> None:
    output.write(len(message).to_bytes(LENGTH_BYTES) + message)
    output.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
