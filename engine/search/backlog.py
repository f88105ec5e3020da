"""The process that updates an index that is far behind: `python -m … FOLDER`.

It ends once little is lacking, or when its standard input does, as the end of the process that keeps
the index leaves it. On its standard output it writes a byte for each step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from select import select
from time import monotonic

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.search.follow import TAKEN_AT_ONCE, Follower
from tollkeeper.engine.search.worker_processes import (
    command_of,
    process_environment,
    run_collector_rarely,
    source_of_process,
)

_PATIENCE_S = 10.0
"""So long a process of the lowest priority may bring nothing."""
_SHARE_S = 20.0
"""So long another one then takes a share of the processors that others want too, or longer for a
first step."""
_LOWEST = 19
_LOW = 5
"""Beside one that wants all of a processor, and has the usual priority, this has a quarter of it."""
_MOST_AT_ONCE = 2 * TAKEN_AT_ONCE
"""More than the process that answers takes in at once: a page of the index is written once for all
entries of a step that come to it, and payments wait for the disk to write it.
"""
_STANDARD_INPUT, _STANDARD_OUTPUT = 0, 1
_MOST_STEPS = 4096


def index_backlog(source: JournalSource) -> None:
    """Has a process of its own bring the index up, and waits for its end, which may come too soon.

    It takes the time that nothing else on the machine wants. Where others want all, and it brings
    nothing, another takes its place for a while, with a share that others can't take from it: so the
    index goes on, however busy the machine is.
    """
    while not (_index_idly(source) or _index_with_share(source)):
        pass


def _index_idly(source: JournalSource) -> bool:
    """Whether the process came to its end, as long as it brought something now and then."""
    with _indexing(source) as process:
        yield_processor(process.pid)
        while (taken := _steps_of(process, _PATIENCE_S)) is not None:
            if not taken:
                return True
    return False


def _index_with_share(source: JournalSource) -> bool:
    """Whether the process came to its end within `_SHARE_S`, or with its first step."""
    with _indexing(source) as process:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, process.pid, max(own, _LOW))
        end = monotonic() + _SHARE_S
        taken = _steps_of(process, None)
        while taken is not None:
            if not taken:
                return True
            taken = _steps_of(process, max(end - monotonic(), 0))
    return False


def _steps_of(process: subprocess.Popen[bytes], seconds: float | None) -> bytes | None:
    """A byte for each step that the process took, as soon as there are any; none once it has ended,
    and None where there are none for so long."""
    assert process.stdout is not None
    steps = process.stdout.fileno()
    return os.read(steps, _MOST_STEPS) if select([steps], [], [], seconds)[0] else None


@contextmanager
def _indexing(source: JournalSource) -> Iterator[subprocess.Popen[bytes]]:
    """A process that brings the index up, for as long as this lasts."""
    with subprocess.Popen(  # noqa: S603 - the arguments are this package's own
        command_of("backlog", source),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=process_environment(source),
    ) as process:
        try:
            yield process
        finally:
            # A step may be within a transaction, which is then as if never begun.
            process.kill()


def yield_processor(process: int) -> None:
    """Let every other process run before this one; where that is not permitted, only give it the lowest
    priority."""
    os.setpriority(os.PRIO_PROCESS, process, _LOWEST)
    if sys.platform == "linux":
        with suppress(PermissionError):
            os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


def main(source: JournalSource) -> None:
    """Index the journal until less is left than one step takes in."""
    run_collector_rarely()
    threading.Thread(target=_end_with_input, daemon=True).start()
    with closing(Follower(source)) as follower:
        while follower.step(_MOST_AT_ONCE) >= TAKEN_AT_ONCE:
            # The parent may have ended: `_end_with_input` then ends this process.
            with suppress(BrokenPipeError):
                os.write(_STANDARD_OUTPUT, b".")


def _end_with_input() -> None:
    # Nothing is ever sent: `read` returns when the parent ends. Not `sys.stdin`, whose lock the
    # interpreter takes when it shuts down.
    os.read(_STANDARD_INPUT, 1)
    # Exiting within a transaction is safe: SQLite rolls it back.
    os._exit(0)


if __name__ == "__main__":
    main(source_of_process())
