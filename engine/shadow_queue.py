"""Shadow evaluations that wait until their payment has been decided and kept."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.registry.trials import Decider

QUEUE_LIMIT = 256

Trial: TypeAlias = tuple[int, Decider, str, int]
"""An account's number, and the kind, name and version of the shadow."""


class QueuedShadow(NamedTuple):
    """One payment for one shadow: the decision that was made, and a call that gives the shadow's.

    `time` is the payment's event time in µs. `evaluate` reads only what it was made with.
    """

    trial: Trial
    payment: str
    time: int
    decided: Decision
    evaluate: Callable[[], Decision]


@dataclass(slots=True)
class ShadowQueue:
    """At most `QUEUE_LIMIT` evaluations wait; further ones are skipped. `skipped` counts them by
    trial until the count is recorded, `lost` counts them for good.

    `unfinished` counts those that wait and those being evaluated.
    """

    waiting: deque[QueuedShadow] = field(default_factory=deque)
    skipped: Counter[Trial] = field(default_factory=Counter)
    filled: asyncio.Event = field(default_factory=asyncio.Event)
    unfinished: int = 0
    lost: int = 0

    def add(self, item: QueuedShadow) -> None:
        if len(self.waiting) >= QUEUE_LIMIT:
            self.skip(item)
            return
        self.waiting.append(item)
        self.unfinished += 1
        self.filled.set()

    def skip(self, item: QueuedShadow) -> None:
        self.skipped[item.trial] += 1
        self.lost += 1

    def take(self, count: int) -> list[QueuedShadow]:
        """The oldest ones, at most `count`."""
        taken = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        if not self.waiting:
            self.filled.clear()
        return taken
