"""The process that updates an index that is far behind: `python -m … FOLDER`.

It runs only on processor time that nothing else wants. It ends once one step takes in all that is
left, or when its standard input is closed, which happens when the parent process ends.
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
    """Update the index in a process of its own, and wait for that process to end. It may end before
    the index is up to date.
    """
    with subprocess.Popen(  # noqa: S603 - the arguments are this package's own
        command_of("backlog", source),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=process_environment(source),
    ) as process:
        process.wait()


def main(source: JournalSource) -> None:
    """Index the journal until less is left than one step takes in."""
    yield_processor()
    spare_collector()
    threading.Thread(target=_end_with_input, daemon=True).start()
    with closing(Follower(source)) as follower:
        while follower.step() >= TAKEN_AT_ONCE:
            pass


def yield_processor() -> None:
    """Run at the idle scheduling class, or at the lowest priority where that isn't permitted."""
    os.nice(_NICENESS)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _end_with_input() -> None:
    # Nothing is ever sent: `read` returns when the parent ends. Not `sys.stdin`, whose lock the
    # interpreter takes when it shuts down.
    os.read(_STANDARD_INPUT, 1)
    # Exiting within a transaction is safe: SQLite rolls it back.
    os._exit(0)


if __name__ == "__main__":
    main(source_of_process())
