"""Work whose length an author's text decides, done in a process of its own.

The process reads a pickled function with its arguments from its standard input and writes what it
gives, pickled, to its standard output. Both ends are this release on this machine.
"""

from __future__ import annotations

import asyncio
import pickle
import resource
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MEMORY_BYTES = 2 << 30


class ChildFailed(Exception):  # noqa: N818 - named for what happened
    """The process ended without an answer."""


async def run_in_child(
    seconds: float, function: Callable[P, T], *given: P.args, **named: P.kwargs
) -> T:
    """What a module's function gives in a process of its own.

    Raises `TimeoutError` when it takes longer than `seconds`, `ChildFailed`.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=PIPE, stdout=PIPE
    )
    try:
        task = pickle.dumps((function, given, named))
        answer, _ = await asyncio.wait_for(child.communicate(task), seconds)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise ChildFailed(f"{function.__name__} ended with {child.returncode}")
    found: T = pickle.loads(answer)  # noqa: S301 - our own process wrote it
    return found


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    function, given, named = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process wrote it
    answer: Any = function(*given, **named)
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main()
