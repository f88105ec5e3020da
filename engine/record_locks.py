"""Locks for a read of the journal followed by a write that depends on it, and for samples that are
sent to webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from tollkeeper.engine.journal.contract import Unavailable

LockedThing: TypeAlias = Literal["event", "idempotency key", "payment", "webhook"]
TURN_PATIENCE_S: Final = 10.0
"""How long (s) to wait for a lock: its holder may wait for a database that can't be reached."""


class RecordLock:
    """A lock, granted in the order of requests. Raises `Unavailable` after `TURN_PATIENCE_S` seconds.

    Not asyncio's, whose wait can be bounded only in a task: a plain request has none.
    """

    __slots__ = ("__weakref__", "_is_held", "_turns")

    def __init__(self) -> None:
        self._is_held = False
        # The futures of the requests that wait, in their order.
        self._turns: dict[asyncio.Future[None], None] = {}

    def locked(self) -> bool:
        return self._is_held

    async def __aenter__(self) -> None:
        if not self._is_held:
            self._is_held = True
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._turns[turn] = None
        patience = loop.call_later(TURN_PATIENCE_S, _give_up, turn)
        try:
            await turn
        except BaseException:
            if turn in self._turns:
                del self._turns[turn]
            else:
                # It got its turn, and was cancelled before it could take it.
                self._pass_on()
            raise
        finally:
            patience.cancel()

    async def __aexit__(self, *_raised: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        for turn in self._turns:
            # One that has given up or was cancelled removes itself.
            if not turn.done():
                del self._turns[turn]
                turn.set_result(None)
                return
        self._is_held = False


def _give_up(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(Unavailable("another change of the same takes long"))


class RecordLocks:
    """A lock for each thing; a lock exists only while it is held or waited for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, RecordLock] = WeakValueDictionary()

    def of(self, what: LockedThing, account: int, name: str) -> RecordLock:
        """The lock to hold from the read until the write is done, or the sample was answered."""
        return self._locks.setdefault((what, account, name), RecordLock())

    @asynccontextmanager
    async def of_all(
        self, what: LockedThing, account: int, names: Iterable[str]
    ) -> AsyncIterator[None]:
        """Hold the locks of several things; the task must hold no other of the kind. Raises
        `Unavailable`."""
        async with AsyncExitStack() as turns:
            # In one order everywhere, so that no two wait for each other.
            for name in sorted(names):
                await turns.enter_async_context(self.of(what, account, name))
            yield

    def __len__(self) -> int:
        return len(self._locks)
