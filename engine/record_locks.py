"""Locks for a read of the journal followed by a write that depends on it, and for samples that are
sent to webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, TypeAlias
from weakref import WeakValueDictionary

LockedThing: TypeAlias = Literal["event", "idempotency key", "payment", "webhook"]


class RecordLocks:
    """A lock for each thing, granted in the order of requests; a lock exists only while it is held
    or waited for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, what: LockedThing, account: int, name: str) -> asyncio.Lock:
        """The lock to hold from the read until the write is done, or the sample was answered."""
        return self._locks.setdefault((what, account, name), asyncio.Lock())

    @asynccontextmanager
    async def of_all(
        self, what: LockedThing, account: int, names: Iterable[str]
    ) -> AsyncIterator[None]:
        """Hold the locks of several things; the task must hold no other of the kind."""
        async with AsyncExitStack() as turns:
            # In one order everywhere, so that no two wait for each other.
            for name in sorted(names):
                await turns.enter_async_context(self.of(what, account, name))
            yield

    def __len__(self) -> int:
        return len(self._locks)
