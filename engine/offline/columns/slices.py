"""What happened in one order, handed out in spans of sequence numbers that follow one another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tollkeeper.engine.journal.entries import Entry


class SequenceSlices:
    """Hands out batches of entries that come in the order of their sequence numbers."""

    def __init__(self, batches: Iterable[list[Entry]]) -> None:
        self._batches = iter(batches)
        self._left: list[Entry] = []

    def between(self, _after: int, up_to: int) -> Iterator[list[Entry]]:
        """Those up to a sequence number, beyond what was handed out before."""
        while True:
            if not self._left:
                self._left = next(self._batches, [])
                if not self._left:
                    return
            end = bisect_right(self._left, up_to, key=lambda entry: entry.sequence)
            batch, self._left = self._left[:end], self._left[end:]
            if batch:
                yield batch
            if self._left:
                return
