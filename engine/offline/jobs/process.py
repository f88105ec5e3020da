"""The process that jobs run in: `python -m … MEGABYTES`.

It reads length-prefixed pickles of `JobCall` from its standard input and writes `JobWord` to its
standard output, of each job how far it is, what it shows before its end, and then what came of it. It
runs at the lowest priority, and ends when its standard input does, also within a job: the service's
end leaves nothing running.
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
"""How many bytes, the most significant first, tell the length of a message."""
_NICENESS = 15
_LEAST_STEP = 0.005


class JobCall(NamedTuple):
    """A job: `work(progress, *given)`, in so many `seconds` of computing; the function stands in a
    module."""

    work: Callable[..., Any]
    given: tuple[Any, ...]
    seconds: float


class JobWord(NamedTuple):
    """What a job says: the share that is done, what it shows of what it finds, what it found, the
    violations for which it was refused, or, without `value`, that it needed too much time or memory,
    or failed."""

    what: Literal["progress", "shown", "found", "refused", "slow", "memory", "failed"]
    value: Any = None


def main(megabytes: int) -> None:
    """Until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    # What a job prints must not stand among the answers.
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
    """The last word of a job, which is what can't be carried too."""
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
        # Whatever it is, who asked must hear of it.
        traceback.print_exc(file=sys.stderr)
        return _pack(JobWord("failed"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class _SentProgress:
    """Writes what a job tells before its end."""

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
    """A job's time is over, whatever it is at."""


def _stop_slow(_signal: int, _frame: object) -> None:
    raise _SlowJob


def _pack(told: JobWord) -> bytes:
    return pickle.dumps(tuple(told))


def _send(output: BinaryIO, message: bytes) -> None:
    output.write(len(message).to_bytes(LENGTH_BYTES) + message)
    output.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
