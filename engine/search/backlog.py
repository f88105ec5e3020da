"""The process that brings an index that is far behind up to its journal: `python -m … FOLDER`.

It takes the time that nothing else on the machine wants. It ends once little is lacking, or when its
standard input does, as the end of the process that keeps the index leaves it.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import closing, suppress

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.search.beside import (
    command_of,
    process_environment,
    source_of_process,
    spare_collector,
)
from tollkeeper.engine.search.follow import TAKEN_AT_ONCE, Follower

_NICENESS = 19
_STANDARD_INPUT = 0


def index_backlog(source: JournalSource) -> None:
    """Has a process of its own bring the index up, and waits for its end, which may come too soon."""
    with subprocess.Popen(  # noqa: S603 - the arguments are this package's own
        command_of("backlog", source),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=process_environment(source),
    ) as process:
        process.wait()


def main(source: JournalSource) -> None:
    """Until less is lacking than one step takes in."""
    yield_processor()
    spare_collector()
    threading.Thread(target=_end_with_input, daemon=True).start()
    with closing(Follower(source)) as follower:
        while follower.step() >= TAKEN_AT_ONCE:
            pass


def yield_processor() -> None:
    """Lets every other process go first. Who may not ask for that has the lowest priority alone."""
    os.nice(_NICENESS)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _end_with_input() -> None:
    # Nothing comes. Not `sys.stdin`, whose lock the interpreter wants when it ends.
    os.read(_STANDARD_INPUT, 1)
    # A step may be within a transaction, which is then as if never begun.
    os._exit(0)


if __name__ == "__main__":
    main(source_of_process())
