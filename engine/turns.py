"""Whoever reads something of a journal and then writes what follows from it does so alone, and so
does who sends a sample to a webhook."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Literal, TypeAlias
from weakref import WeakValueDictionary

OneAtATime: TypeAlias = Literal["idempotency key", "payment", "webhook"]


class Turns:
    """A lock for each thing, in the order in which it is asked for; none is kept that nobody holds
    or waits for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, what: OneAtATime, account: int, name: str) -> asyncio.Lock:
        """To be held from the first read until what follows from it is kept, or was answered."""
        return self._locks.setdefault((what, account, name), asyncio.Lock())

    def __len__(self) -> int:
        return len(self._locks)
