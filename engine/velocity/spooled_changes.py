"""Changes of first-seen times that are too many for memory, in a file that ends with the process.

They come in the journal's order, and their table is in the order of the groups' hashes: written as they
come, each batch would touch most pages of a large table, and tens of millions took hours of writing.
Here they are appended in sorted batches, and read range of hashes by range, so that the table's pages
are written once, in order: an external merge sort.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from struct import Struct
from tempfile import TemporaryFile
from typing import NamedTuple, TypeAlias

HashedChange: TypeAlias = tuple[bytes, int, int]
"""A group's hash of 16 bytes, a time (µs), and by how much its count changes."""

_RECORD = Struct(">16sQi")
_EARLIEST = 2**63
"""Added to times, so that their bytes are in their order."""
_RANGES = 1024
_SHIFT = 6
"""The bits of a hash's first two bytes that are left out of the number of its range."""
_BOUNDS = [(number << _SHIFT).to_bytes(2, "big") for number in range(_RANGES)]


class _Batch(NamedTuple):
    """Where a batch begins in the file, and after how many bytes of it each range does."""

    offset: int
    ranges: array[int]


class SpooledChanges:
    """Changes of one series. Raises OSError when the folder's disk can't take them."""

    def __init__(self, folder: Path) -> None:
        # Without a name: whatever ends the process, nothing of it is left.
        self._file = TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 - closed by `close`
        self._batches: list[_Batch] = []
        self._size = 0

    def add(self, changes: Iterable[HashedChange]) -> None:
        """Append some changes, as many as may be sorted while the interpreter waits."""
        pack = _RECORD.pack
        records = sorted(pack(seen, time + _EARLIEST, change) for seen, time, change in changes)
        whole = memoryview(b"".join(records))
        ranges = array("I", (bisect_left(records, bound) * _RECORD.size for bound in _BOUNDS))
        ranges.append(len(whole))
        self._batches.append(_Batch(self._size, ranges))
        self._size += len(whole)
        while whole:
            whole = whole[self._file.write(whole) :]

    def ranges(self) -> Iterator[list[HashedChange]]:
        """Read all changes in order, some at a time: of each group and time their sum, unless it is 0."""
        for number in range(_RANGES):
            records = sorted(self._records(number))
            if not records:
                continue
            found = []
            # All of a record but its change.
            for key, same in groupby(map(_RECORD.unpack, records), itemgetter(0, 1)):
                change = sum(each[2] for each in same)
                if change:
                    found.append((key[0], key[1] - _EARLIEST, change))
            yield found

    def close(self) -> None:
        self._file.close()

    def _records(self, number: int) -> Iterator[bytes]:
        descriptor, size = self._file.fileno(), _RECORD.size
        for offset, ranges in self._batches:
            begin, end = ranges[number], ranges[number + 1]
            if begin < end:
                some = os.pread(descriptor, end - begin, offset + begin)
                for at in range(0, len(some), size):
                    yield some[at : at + size]
