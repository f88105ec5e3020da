"""Lists in metadata as sets, made once a payment: a rule may look for something in each of them, and
for each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_HELD = 16 * 1024
"""How many elements the lists that are held have together: more than twice those of the largest
metadata, so that no list of a payment pushes out another."""


class EntrySets(Generic[T]):
    """The sets of the lists that were asked for last; `make` makes one.

    A list is known as itself, not by what it holds: nothing changes one.
    """

    def __init__(self, make: Callable[[Sequence[Any]], frozenset[T]]) -> None:
        self._make = make
        self._held: dict[int, tuple[Sequence[Any], frozenset[T]]] = {}
        self._size = 0
        self._lock = Lock()

    def of(self, entries: Sequence[Any]) -> frozenset[T]:
        held = self._held.get(id(entries))
        if held is not None:
            return held[1]
        made = self._make(entries)
        with self._lock:
            if id(entries) not in self._held:
                self._held[id(entries)] = entries, made
                self._size += len(entries)
            while self._size > MOST_HELD and len(self._held) > 1:
                self._size -= len(self._held.pop(next(iter(self._held)))[0])
        return made
