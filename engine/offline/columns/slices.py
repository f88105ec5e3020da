"""Cut a stream of entries into consecutive spans of sequence numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tollkeeper.engine.journal.entries import Entry


class SequenceSlices:
    """Gives the entries of consecutive spans, from batches in the order of sequence numbers."""

    def __init__(self, batches: Iterable[list[Entry]]) -> None:
        self._batches = iter(batches)
        self._left: list[Entry] = []

    def between(self, _after: int, up_to: int) -> Iterator[list[Entry]]:
        """The entries up to a sequence number that were not given before."""
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
