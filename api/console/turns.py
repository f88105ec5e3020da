"""Pages are made in parts, each in a turn of the event loop of its own.

A payment waits for everything that the loop does before it. A page makes its calls side by side, and
many answers may arrive at once: without turns, reading all of them would delay payments as much as
making a whole page at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter

IDLE_S = 0.000_05
"""A turn of the event loop in which nothing else was done takes less."""
LONGEST_WAIT_S = 0.003
"""How long a part waits at most for such a turn: pages go on, however many payments come."""
CROWD = 4
"""For every so many parts that wait, one more is made in a turn, so that many people at once do not
wait for each other."""


class Turns:
    """Gives each part its turn, in the order of their requests, once the event loop is idle, or after
    `patience_s` seconds.
    """

    def __init__(self, patience_s: float = LONGEST_WAIT_S) -> None:
        self._patience_s = patience_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._giving: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait for a turn of the event loop to make one part in."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._giving is None:
            self._giving = asyncio.create_task(self._give())
        await turn

    async def _give(self) -> None:
        while self._waiting:
            await _rest(self._patience_s)
            for _ in range(1 + len(self._waiting) // CROWD):
                turn = self._waiting.popleft()
                # The future of a request that was cancelled meanwhile is done.
                if not turn.done():
                    turn.set_result(None)
            await asyncio.sleep(0)
        self._giving = None


async def _rest(patience_s: float) -> None:
    """Wait until the event loop has made a turn without other work, at most `patience_s` seconds."""
    begun = before = perf_counter()
    while before - begun < patience_s:
        await asyncio.sleep(0)
        after = perf_counter()
        if after - before < IDLE_S:
            return
        before = after
