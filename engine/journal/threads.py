"""Work on a database in threads of its own, which end when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from tollkeeper.engine.journal.contract import Unavailable

T = TypeVar("T")


async def in_thread(threads: Executor, work: Callable[[], T]) -> T:
    """Run `work` in one of the threads. Raises `Unavailable` once they are shut down: a node that
    leaves its journal still has requests under way."""
    try:
        doing = asyncio.get_running_loop().run_in_executor(threads, work)
    except RuntimeError as error:
        raise Unavailable("the journal was left") from error
    return await doing
